import path from "node:path";
import { CommandError, messageOf } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import type { UpstreamConfig } from "../project/upstream-config.ts";
import { isUpstreamName, toUpstreamName } from "../project/upstream-name.ts";
import { readConfigFile } from "./config-file.ts";
import { jsonText } from "./json-text.ts";
import { isOurEntry, wrapWordsOf } from "./ownership.ts";
import { tomlText } from "./toml-text.ts";

/** The servers that a host's file names, as upstreams of ours. */
export interface ReadServers {
  readonly servers: Readonly<Record<string, UpstreamConfig>>;
  /** Those that are no upstream, and why. */
  readonly skipped: readonly { readonly name: string; readonly why: string }[];
}

type Table = Readonly<Record<string, unknown>>;

/** Where hosts keep their servers. */
const places = [["mcpServers"], ["servers"], ["context_servers"], ["mcp_servers"], ["mcp", "servers"], ["mcp"]];

/** Reads such a file. Throws one sentence when it cannot be one, or names no server that can be wrapped. */
export function readServers(named: string): ReadServers {
  const file = path.resolve(named);
  const { bytes, text } = readConfigFile(file);
  if (bytes === undefined) throw new CommandError(`--from: there is no file ${file}.`);
  const entries = Object.entries(findServers(parse(file, text), file));
  const skipped: { name: string; why: string }[] = [];
  const servers: Record<string, UpstreamConfig> = {};
  for (const [name, found] of entries) {
    const read = isTable(found) ? toUpstream(found) : "it is no object";
    if (typeof read === "string") skipped.push({ name, why: read });
    else servers[freeName(name, servers)] = read;
  }
  if (Object.keys(servers).length > 0) return { servers, skipped };
  const why = skipped.map((one) => `${one.name}: ${one.why}`).join("; ");
  throw new CommandError(`${file} names no server that could be wrapped${why === "" ? "" : ` (${why})`}.`);
}

function parse(file: string, text: string): Table {
  try {
    return (file.endsWith(".toml") ? tomlText : jsonText).read(text) as Table;
  } catch (cause) {
    throw new CommandError(`Cannot read ${file}: ${messageOf(cause)}.`, { cause });
  }
}

function findServers(config: Table, file: string): Table {
  for (const keys of places) {
    const found = keys.reduce<unknown>((at, key) => (isTable(at) ? at[key] : undefined), config);
    if (isTable(found)) return found;
  }
  throw new CommandError(
    `${file} has none of the tables in which hosts name servers: ${places.map((keys) => keys.join(".")).join(", ")}.`,
  );
}

/** Two names that look alike once they fit stay two. */
function freeName(name: string, taken: Readonly<Record<string, unknown>>): string {
  const fitting = isUpstreamName(name) ? name : toUpstreamName(name);
  let free = fitting;
  for (let at = 2; Object.hasOwn(taken, free); at++) free = `${fitting.slice(0, 28)}-${at}`;
  return free;
}

/** An entry in the words of any host; a sentence where it is no upstream. */
export function toUpstream(entry: Table): UpstreamConfig | string {
  if (entry.disabled === true || entry.enabled === false) return "it is disabled there";
  if (isOurEntry(entry, undefined)) return `it is ${thisProgram.title} itself`;
  if (wrapWordsOf(entry) !== undefined) return `it is behind ${thisProgram.title} already`;
  const url = [entry.url, entry.httpUrl, entry.serverUrl].find((one) => typeof one === "string");
  if (url !== undefined) return isAddress(url as string) ? toUrlUpstream(entry, url as string) : notAddress;
  // Zed had the command in a table of its own.
  const { path: program, ...inner } = isTable(entry.command) ? entry.command : { path: undefined };
  const words = program === undefined ? entry.command : program;
  const [command, ...before] = Array.isArray(words) ? words : [words];
  const said = { ...entry, ...inner };
  const args = [...before, ...(Array.isArray(said.args) ? said.args : [])];
  if (typeof command !== "string" || command === "") return "it has neither a command nor a url";
  if (said.args !== undefined && said.args !== null && !Array.isArray(said.args)) return "its args are no list";
  if (!args.every((word) => typeof word === "string")) return "its arguments are not all texts";
  const env = toTexts(said.env ?? said.environment);
  return {
    command,
    ...(args.length > 0 && { args }),
    ...(env !== undefined && { env }),
    ...(typeof said.cwd === "string" && { cwd: said.cwd }),
  };
}

const notAddress = "its url must begin with http:// or https://, without a name and password in it";

/** Hosts put variables into it too. */
function isAddress(url: string): boolean {
  return /^(?:https?:\/\/[^/\s]|\$\{)/i.test(url) && !/^https?:\/\/[^/?#]*@/i.test(url);
}

function toUrlUpstream(entry: Table, url: string): UpstreamConfig {
  const transport = transportOf(entry);
  const fromVariables = Object.entries(toTexts(entry.env_http_headers) ?? {}).map(([name, variable]) => [
    name,
    `\${${variable}}`,
  ]);
  const token = entry.bearer_token_env_var;
  const headers = {
    ...toTexts(entry.headers ?? entry.http_headers),
    ...Object.fromEntries(fromVariables),
    ...(typeof token === "string" && { Authorization: `Bearer \${${token}}` }),
  };
  return {
    url,
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(transport !== undefined && { transport }),
  };
}

/** Where nothing is said it is found out. */
function transportOf({ type, transport, httpUrl }: Table): UpstreamConfig["transport"] {
  const said = String(type ?? transport ?? "").toLowerCase();
  if (said === "sse") return "sse";
  return httpUrl !== undefined || ["http", "streamable-http", "streamablehttp"].includes(said) ? "http" : undefined;
}

/** Numbers and switches are written as such by some. */
function toTexts(value: unknown): Record<string, string> | undefined {
  if (!isTable(value)) return undefined;
  const texts = Object.entries(value).filter(([, one]) => ["string", "number", "boolean"].includes(typeof one));
  return texts.length === 0 ? undefined : Object.fromEntries(texts.map(([name, one]) => [name, String(one)]));
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
