import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { writeFiles } from "../helpers/home.ts";
import { executable } from "../helpers/meanwhile.ts";
import { rounds } from "../helpers/rounds.ts";

const root = path.resolve(import.meta.dirname, "../..");
const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "CHANGELOG.md",
  ...globSync("docs/*.md", { cwd: root }),
  ...globSync("bench/*.md", { cwd: root }),
];

interface Snippet {
  readonly language: string;
  /** What stands behind the language: a file's name. */
  readonly name: string;
  readonly text: string;
}

const textOf = (page: string) => readFileSync(path.join(root, page), "utf8");
const snippetsOf = (page: string): Snippet[] =>
  [...textOf(page).matchAll(/^```(\w+) ?(.*)\n([\s\S]*?)^```$/gm)].map(([, language = "", name = "", text = ""]) => ({
    language,
    name,
    text,
  }));

// A page waits for its commands, one after the other, and no page for another.
vi.setConfig({ maxConcurrency: 3 });

describe("every snippet is what it says", () => {
  // One for all: of tests that run at the same time each would take the others' folders away.
  const folders = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
  afterAll(() => rmSync(folders, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));

  test.concurrent.each(pages.filter((page) => snippetsOf(page).length > 0))("%s", async (page) => {
    const folder = workplace(mkdtempSync(path.join(folders, "page-")));
    for (const snippet of snippetsOf(page)) {
      if (snippet.language === "json") JSON.parse(snippet.text);
      // The folder's examples are this repository's own: what is said to be theirs is compared, never written.
      if (snippet.language === "ts" && snippet.name.startsWith("examples/"))
        expect(textOf(snippet.name)).toContain(snippet.text);
      else if (snippet.language === "ts")
        writeFiles(folder, {
          [snippet.name || expect.fail(`a ts snippet of ${page} has no file name`)]: snippet.text,
        });
      if (snippet.language === "console" && !rounds.pagesNotRun.includes(page))
        for (const { command, output } of stepsOf(snippet.text).filter(
          (step) => !rounds.commandsNotRun.includes(step.command),
        ))
          expect(await runSteadily(command, folder, toPattern(output)), `$ ${command}`).toMatch(toPattern(output));
    }
  });
});

test("README's first command is the example's", () => {
  const [first] = snippetsOf("README.md");
  expect(first?.text).toBe(readFileSync(path.join(root, "examples/report/commands/report/build.ts"), "utf8"));
});

test.each(pages)("links of %s lead somewhere", (page) => {
  const targets = [...textOf(page).matchAll(/\]\(([^)#]+)[^)]*\)/g)]
    .map((match) => match[1] as string)
    .filter((target) => !/^[a-z]+:/.test(target));
  for (const target of targets) expect(existsSync(path.resolve(root, path.dirname(page), target)), target).toBe(true);
});

test("README shows code within its first 15 lines and has no open blanks", () => {
  expect(textOf("README.md").split("\n").slice(0, 15).join("\n")).toContain("```ts");
  expect(textOf("README.md")).not.toMatch(/\b[A-Z]{4,}_[A-Z]+\b s\b|CONFORMANCE\./);
});

test("docs/wire.md names every vendor key that the source reads or writes, and no other", () => {
  const sources = globSync("src/{mcp,client,task,command}/**/*.ts", { cwd: root }).map((file) =>
    readFileSync(path.join(root, file), "utf8"),
  );
  const keys = (text: string) =>
    [...text.matchAll(/["`[]meanwhile\/([a-zA-Z]+)["`\]:]/g)].map((match) => match[1] as string);
  const published = new Set(["client", "testing"]);
  const used = new Set(sources.flatMap(keys).filter((key) => !published.has(key)));
  const told = new Set(keys(textOf("docs/wire.md")).filter((key) => key !== "diagnose"));
  expect([...told].sort()).toEqual([...used].sort());
});

test.each(["SECURITY.md", "docs/security.md"])("%s names tests that are there", (page) => {
  const named = [...textOf(page).matchAll(/`((?:[a-z-]+\/)*[a-z-]+\.test\.ts)`/g)].map((match) => match[1] as string);
  expect(named.length).toBeGreaterThan(30);
  for (const file of named) expect(existsSync(path.join(root, "test", file)), file).toBe(true);
});

/** A folder with nothing but Meanwhile installed, in which `meanwhile` and `node` are this repository's own. */
function workplace(folder: string): string {
  mkdirSync(path.join(folder, ".bin"));
  writeFileSync(path.join(folder, ".bin/meanwhile"), `#!/bin/sh\nexec "${process.execPath}" "${executable}" "$@"\n`);
  chmodSync(path.join(folder, ".bin/meanwhile"), 0o755);
  symlinkSync(process.execPath, path.join(folder, ".bin/node"));
  symlinkSync(path.join(root, "examples"), path.join(folder, "examples"));
  mkdirSync(path.join(folder, "node_modules"));
  symlinkSync(root, path.join(folder, "node_modules/meanwhile"));
  symlinkSync(path.join(root, "node_modules/zod"), path.join(folder, "node_modules/zod"));
  return folder;
}

async function run(command: string, folder: string): Promise<string> {
  const env = {
    ...process.env,
    PATH: `${path.join(folder, ".bin")}:${process.env.PATH}`,
    MEANWHILE_HOME: path.join(folder, ".home"),
    // The program that docs/own-program.md makes has its own.
    ACME_HOME: path.join(folder, ".acme"),
  };
  const shell = spawn("sh", ["-c", `${command} 2>&1`], { cwd: folder, env });
  shell.stdin.end();
  let printed = "";
  shell.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  await once(shell, "close");
  return printed;
}

/**
 * The SDK's client drops a last progress that it reads together with the result, which happens when the machine is
 * busy: its example may try again.
 */
async function runSteadily(command: string, folder: string, expected: RegExp): Promise<string> {
  const tries = command === "node examples/report/client.ts" ? 4 : 1;
  let printed = await run(command, folder);
  for (let count = 1; count < tries && !expected.test(printed); count++) printed = await run(command, folder);
  return printed;
}

function stepsOf(text: string): { command: string; output: string }[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [command = "", ...lines] = step.split("\n");
      return { command, output: lines.join("\n") };
    });
}

/** `…` stands for anything; on a line of its own for any number of lines. */
function toPattern(output: string): RegExp {
  const escaped = output.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replace(/^…\n/gm, "(?:.*\\n)*?").replaceAll("…", ".*")}$`);
}
