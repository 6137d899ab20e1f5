import { isObject, type Json, textOf } from "../../../wire/json.ts";
import type { Callable } from "../../asking/callables.ts";
import type { SurveyedTool } from "../../asking/facts.ts";
import type { Probe } from "../../asking/probe.ts";
import { type Canary, layCanary } from "../../asking/security/canary.ts";
import { argumentsOf } from "../../asking/security/texts.ts";
import { isUnrestricted, judgeOpen } from "../../asking/security/unrestricted.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";
import type { ProbeSession } from "../../wire/probe-session.ts";

const pathNames =
  /^(?:(?:input|output|source|target|dest|destination|src|dst|root|base|working|local|absolute|relative|log|config|image|project)_?)?(?:path|paths|file|files|file_?path|file_?paths|filename|file_?name|directory|dir|folder|cwd|workdir)$/i;
/** What is no rule for a path, but says that it is one. */
const pathFormats = /^(?:file-?|directory-?|folder-?)?path$/i;
const described =
  /\b(?:absolute|relative|file|directory|folder|full) ?paths?\b|\bpaths? (?:to|of|where)\b|\b(?:name|location) of (?:the|a) (?:file|folder|directory)\b/i;
/** What a server says of a path that it looked for and did not find, or may not open. */
const lookedFor =
  /\bENOENT\b|\bEISDIR\b|\bENOTDIR\b|\bEACCES\b|no such file|not a directory|is a directory|file not found|FileNotFoundError|path (?:does not exist|not found)|outside (?:of )?(?:the )?allowed|cannot (?:open|find|read) (?:the )?(?:file|path|directory)/i;
/** As the first word of a name these say that nothing is changed. */
const readingNames = /^(?:read|get|cat|open|view|show|load|list|search|find|stat|head|tail|describe)(?=[^a-z]|$)/;

const maxTools = 8;
const callMs = 2_000;

export const check: Check = {
  id: "security/open-path",
  question:
    "Do arguments that are paths say which paths they take, and are files that only their owner may read kept back?",
  severity: "info",
  why: "A tool that opens whatever path it is given reads and writes outside the folder it was made for: ../ , links and absolute paths lead there, to keys and tokens.",
  remedy:
    "Narrow the argument with a pattern, and in the tool resolve the path, links included, and refuse what is not below the folder that is served.",
  source: "MCP 2026-07-28, Resources: Security Considerations; CVE-2025-53109, CVE-2025-53110",
  limitMs: 20_000,
  async run(probe) {
    const { tools } = probe.facts;
    if (tools.length === 0) return skipped("The server has no tools.");
    const known = new Map(tools.map((tool) => [tool.name, new Set(pathsOf(tool))]));
    const readers = probe.callables.filter(isReader).slice(0, maxTools);
    const session = readers.length === 0 ? undefined : await probe.open({ capabilities: {} });
    if (session !== undefined)
      for (const [name, argument] of await askAround(readers, session)) known.get(name)?.add(argument);
    const open = tools.flatMap((tool): [string, string[]][] => {
      const names = [...(known.get(tool.name) ?? [])].filter((name) =>
        argumentsOf(tool.inputSchema).some((one) => one.name === name && isOpen(one.schema)),
      );
      return names.length === 0 ? [] : [[tool.name, names]];
    });
    const handedOut = session === undefined ? [] : await tryCanary(probe, session, readers, known);
    const faults = [...handedOut, ...judgeOpen(probe, open, "a path")];
    return faults.length === 0 ? passed() : failed(faults);
  },
};

/** The arguments that are paths by their names, formats or descriptions. */
function pathsOf({ inputSchema }: SurveyedTool): string[] {
  return argumentsOf(inputSchema)
    .filter(
      ({ name, schema }) =>
        pathNames.test(snake(name)) ||
        pathFormats.test(textOf(schema.format) ?? "") ||
        described.test(textOf(schema.description) ?? ""),
    )
    .filter(({ schema }) => takesText(schema))
    .map(({ name }) => name);
}

/** `filePath` and `file-path` are `file_path`. */
function snake(name: string): string {
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])|-/g, "_");
}

function takesText(schema: Json): boolean {
  return textOf(schema.type) === "string" || isUnrestricted({ ...schema, format: undefined });
}

function isOpen(schema: Json): boolean {
  return isUnrestricted(pathFormats.test(textOf(schema.format) ?? "") ? { ...schema, format: undefined } : schema);
}

/** Tools that change nothing: they say so, or the user named them and their name does. */
function isReader({ tool, isNamed }: Callable): boolean {
  if (tool.annotations.readOnlyHint === true) return true;
  return isNamed && tool.annotations.destructiveHint !== true && readingNames.test(snake(tool.name).toLowerCase());
}

/** Arguments that a tool takes for a path, as its answers to a text that is none tell. */
async function askAround(
  readers: readonly Callable[],
  session: ProbeSession,
): Promise<(readonly [tool: string, argument: string])[]> {
  const found = await Promise.all(
    readers.map(async ({ tool, arguments: args }) => {
      const texts = Object.entries(args).filter(([, value]) => typeof value === "string" && value !== "");
      const [only] = texts;
      if (only === undefined || texts.length > 1) return [];
      const said = await say(session, tool.name, args);
      return lookedFor.test(said) ? [[tool.name, only[0]] as const] : [];
    }),
  );
  return found.flat();
}

/**
 * Lays a file of our own where only its owner may read, and asks for it in the ways that lead out of a folder. Only on
 * this machine: elsewhere there is no such file.
 */
async function tryCanary(
  probe: Probe,
  session: ProbeSession,
  readers: readonly Callable[],
  known: ReadonlyMap<string, ReadonlySet<string>>,
): Promise<Fault[]> {
  const tries = readers.flatMap((callable) =>
    [...(known.get(callable.tool.name) ?? [])].map((argument) => ({ callable, argument })),
  );
  const canary = tries.length === 0 || !isHere(probe) ? undefined : layCanary(probe.privateFolder);
  if (canary === undefined) return [];
  try {
    const faults = await Promise.all(tries.map((one) => tryTool(probe, session, { ...one, canary })));
    return faults.flat();
  } finally {
    canary.remove();
  }
}

async function tryTool(
  probe: Probe,
  session: ProbeSession,
  { callable, argument, canary }: { callable: Callable; argument: string; canary: Canary },
): Promise<Fault[]> {
  const { tool, arguments: args } = callable;
  const isList =
    isObject(tool.inputSchema.properties) &&
    isObject(tool.inputSchema.properties[argument]) &&
    tool.inputSchema.properties[argument].type === "array";
  for (const { what, path } of canary.ways) {
    const said = await say(session, tool.name, { ...args, [argument]: isList ? [path] : path });
    if (!canary.isIn(said)) continue;
    const name = probe.show(tool.name, 80);
    return [
      {
        subject: name,
        severity: "blocker",
        title: `${name} hands out a file of its user's that nobody else may read (mode 0600)`,
        remedy:
          "In the tool resolve the path, links included, and refuse what is not below the folder that is served; never serve a whole home, where keys and tokens lie.",
        evidence: [
          probe.sent(`${tool.name} with ${argument}: ${what} of a file of our own, mode 0600, with a random content`),
          probe.received("that content"),
        ],
      },
    ];
  }
  return [];
}

/** A server that was started here, or that listens on this machine. */
function isHere({ target }: Probe): boolean {
  return target.kind === "stdio" || /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(target.url).hostname);
}

async function say(session: ProbeSession, name: string, args: Json): Promise<string> {
  const { message } = await session.request("tools/call", { name, arguments: args }, { timeoutMs: callMs });
  return JSON.stringify(message ?? "");
}
