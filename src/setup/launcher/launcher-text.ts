import { readFileSync } from "node:fs";
import path from "node:path";
import { packageFolder } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { scriptEnding } from "../launch.ts";

/** What a launcher starts. Paths are absolute. */
export interface LauncherFacts {
  /** The version of the package that wrote the launcher. */
  readonly version: string;
  readonly node: string;
  readonly nodeVersion: string;
  /** The executable of the package, which Node runs. */
  readonly package: string;
  /** The text file in which the package states which versions of Node it runs on. */
  readonly rangeFile: string;
  /** `name@version`, where npx fetched the package: npx fetches it again once it is gone. */
  readonly npx?: string | undefined;
  /** The home, where it is not in its usual place. */
  readonly home?: string | undefined;
}

/** The files that a launcher consists of, by the ending of their names. */
export type LauncherTexts = Readonly<Partial<Record<"" | ".cmd" | typeof scriptEnding, string>>>;

/** Returns the file that says which versions of Node the package runs on. */
export function ownRangeFile(): string {
  return path.join(packageFolder(), "bin", "node-range.txt");
}

/** Returns the text of each file. On Windows a .cmd starts the part in JavaScript; elsewhere a shell script does it all. */
export function toLauncherTexts(facts: LauncherFacts, isWindows: boolean): LauncherTexts {
  return isWindows ? { ".cmd": toCmd(facts), [scriptEnding]: toJavaScript(facts) } : { "": toShell(facts) };
}

const heading = () =>
  `Starts ${thisProgram.title} for the MCP hosts of this machine. \`${thisProgram.name} setup\` writes this file, and a newer version replaces it.`;

function toShell(facts: LauncherFacts): string {
  const values = {
    name: thisProgram.name,
    title: thisProgram.title,
    node: facts.node,
    node_version: facts.nodeVersion,
    package: facts.package,
    range_file: facts.rangeFile,
    npx: facts.npx ?? "",
    home: facts.home ?? "",
  };
  const lines = Object.entries(values).map(([name, value]) => `mw_${name}='${value.replaceAll("'", "'\\''")}'\n`);
  // An author's program has variables of its own.
  const script = template("launcher.sh").replaceAll(/\bPROGRAM_/g, thisProgram.variables);
  return `#!/bin/sh\n# ${heading()}\n# ${toJson(facts)}\n${lines.join("")}\n${script}`;
}

function toJavaScript(facts: LauncherFacts): string {
  const { name, title, variables } = thisProgram;
  const recorded = toJson({ name, title, variables, ...facts });
  return `"use strict";\n// ${heading()}\n// ${toJson(facts)}\nconst recorded = ${recorded};\n\n${template("launcher.cjs")}`;
}

function toCmd(facts: LauncherFacts): string {
  const { name, title, variables } = thisProgram;
  const values = Object.entries({ name, title, variables, node: facts.node });
  const lines = values.map(([key, value]) => `set "mw_${key}=${value.replaceAll("%", "%%")}"\n`);
  const text = `@echo off\nrem ${heading()}\nsetlocal EnableExtensions DisableDelayedExpansion\n${lines.join("")}\n${template("launcher.cmd")}`;
  return text.replaceAll("\n", "\r\n");
}

/** On one line: these two end a line of JavaScript, and may be in a path. */
function toJson(value: object): string {
  return JSON.stringify(value).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

/** The part that is the same on every machine. */
function template(name: string): string {
  return readFileSync(path.join(packageFolder(), "bin", name), "utf8").replaceAll("\r\n", "\n");
}

/** Returns what a launcher says it starts; undefined for text that is no launcher. */
export function readLauncherFacts(text: string): LauncherFacts | undefined {
  try {
    const facts = JSON.parse(/^(?:#|\/\/) (\{.*\})$/m.exec(text)?.[1] ?? "") as LauncherFacts;
    const { version, node, nodeVersion } = facts;
    return [version, node, nodeVersion, facts.package].every((one) => typeof one === "string") ? facts : undefined;
  } catch {
    return undefined;
  }
}
