import { existsSync } from "node:fs";
import path from "node:path";
import { UsageError } from "../errors.ts";
import type { UpstreamConfig, UpstreamPrefix } from "./upstream-config.ts";
import { isUpstreamName, maxUpstreamName, nameOfCommand, nameOfUrl } from "./upstream-name.ts";
import { isReference, withoutReferences } from "./variable-references.ts";
import type { Wrap } from "./wrap.ts";
import { urlVariable, type WrapVariables } from "./wrap-variables.ts";

/** What was typed behind `wrap`. */
export interface WrapSaid {
  /** The command line behind `--`. */
  readonly server?: readonly string[] | undefined;
  readonly url?: string;
  readonly header?: readonly string[];
  readonly transport?: string;
  readonly name?: string;
  readonly share?: string;
  readonly prefix?: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly rerun?: readonly string[];
  readonly long?: readonly string[];
  readonly timeLimit?: string;
  /** What was said in variables, in place of `url` and beside `header`. */
  readonly variables?: WrapVariables;
}

export const transports = ["http", "sse"] as const;
export const shares = ["session", "caller", "all"] as const;
export const prefixes: readonly UpstreamPrefix[] = ["always", "collision", "never"];
/** Each may be given several times, or with commas in between. */
const lists = ["allow", "deny", "rerun", "long"] as const;
const maxSeconds = 604_800;

/**
 * What is to be wrapped, by what was typed in a folder; `read` are the servers of a file. Throws one sentence for what
 * cannot be meant.
 */
export function toWrap(said: WrapSaid, cwd: string, read?: Readonly<Record<string, UpstreamConfig>>): Wrap {
  const policy = toPolicy(said);
  const upstreams = read === undefined ? namedByWords(said) : namedByFile(said, read);
  const prefix = choose("--prefix", said.prefix, prefixes);
  const entries = Object.entries(upstreams).map(([name, one]) => [name, { ...atHome(one, cwd), ...policy }]);
  return { upstreams: Object.fromEntries(entries), ...(prefix !== undefined && { prefix }) };
}

function namedByWords(said: WrapSaid): Record<string, UpstreamConfig> {
  const { server, header = [], name, transport, variables } = said;
  const isCommand = server !== undefined && server.length > 0;
  const url = said.url ?? (isCommand ? undefined : variables?.url);
  if (isCommand && url !== undefined)
    throw new UsageError(
      "wrap takes a command behind -- or --url, not both; --from takes several servers from a file.",
    );
  if (!isCommand && url === undefined)
    throw new UsageError("wrap needs the server: a command behind --, --url <url>, or --from <file>.");
  if (isCommand && server[0] === "")
    throw new UsageError("The command behind -- is empty; name the server's program there.");
  if (isCommand && header.length > 0) throw new UsageError("--header is for --url.");
  if (isCommand && transport !== undefined) throw new UsageError("--transport is for --url.");
  const one = isCommand ? toCommand(server) : toUrl(url as string, said);
  const derived = isCommand ? nameOfCommand(server) : nameOfUrl(url as string);
  return { [checkName(name ?? derived)]: one };
}

function namedByFile(
  { server, url, header = [], name }: WrapSaid,
  read: Readonly<Record<string, UpstreamConfig>>,
): Readonly<Record<string, UpstreamConfig>> {
  if ((server?.length ?? 0) > 0 || url !== undefined || header.length > 0)
    throw new UsageError("--from has its servers from the file: leave out the command, --url and --header.");
  const found = Object.values(read);
  if (name === undefined) return read;
  if (found.length !== 1)
    throw new UsageError(`--name names one server, and the file has ${found.length}: ${Object.keys(read).join(", ")}.`);
  return { [checkName(name)]: found[0] as UpstreamConfig };
}

function checkName(name: string): string {
  if (isUpstreamName(name)) return name;
  throw new UsageError(
    `--name ${JSON.stringify(name)} is no name for an upstream; use up to ${maxUpstreamName} letters, digits, - and _.`,
  );
}

/** The shell has replaced what was to be replaced. */
function toCommand([command = "", ...args]: readonly string[]): UpstreamConfig {
  return { command: withoutReferences(command), args: args.map(withoutReferences) };
}

function toUrl(url: string, { url: typed, header = [], transport, variables }: WrapSaid): UpstreamConfig {
  if (!/^https?:\/\/[^/\s]/i.test(url))
    throw new UsageError(
      typed === undefined
        ? `${urlVariable()} must begin with http:// or https://.`
        : `--url must begin with http:// or https://, not ${url}`,
    );
  if (/^https?:\/\/[^/?#]*@/i.test(url))
    throw new UsageError(
      `${typed === undefined ? urlVariable() : "--url"} must not hold a name and password; send them with --header 'Authorization: \${NAME}'.`,
    );
  const headers = Object.fromEntries([...header.map(toHeader), ...(variables?.headers ?? []).map(splitHeader)]);
  const chosen = choose("--transport", transport, transports);
  return {
    // Named, not repeated: it may hold a key.
    url: typed ?? `\${${urlVariable()}}`,
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(chosen !== undefined && { transport: chosen }),
  };
}

const secretHeader = /^(?:proxy-)?authorization$|^cookie$|(?:key|token|secret|password)$/i;

/** What is typed can be read by everybody on the machine, as long as this process lives. */
function toHeader(text: string): [string, string] {
  const [name, value] = splitHeader(text);
  if (secretHeader.test(name) && !isReference(value))
    throw new UsageError(
      `--header ${name}: its value could be read by everybody on this machine; write '${name}: \${NAME}' (in single quotes) and set the variable, or '${name}: file:/path'.`,
    );
  return [name, value];
}

function splitHeader(text: string): [string, string] {
  const [, name = "", value = ""] = /^([^:\s]+)\s*:\s*(.*)$/s.exec(text) ?? [];
  // Not repeated: it may be a secret without its name.
  if (name === "") throw new UsageError("--header must be 'Name: value'; one that was given has no colon.");
  return [name, value];
}

function toPolicy(said: WrapSaid): UpstreamConfig {
  const share = choose("--share", said.share, shares);
  const named = lists.flatMap((name) => {
    const tools = (said[name] ?? []).flatMap((text) => text.split(",")).flatMap((text) => text.trim() || []);
    // Of a variable that is not set nothing is left, and nothing allowed must not mean all.
    if (said[name] !== undefined && tools.length === 0)
      throw new UsageError(`--${name} names no tool; write one, or leave --${name} out.`);
    return tools.length === 0 ? [] : [[name, tools]];
  });
  const seconds = said.timeLimit === undefined ? undefined : Number(said.timeLimit);
  if (seconds !== undefined && !(seconds > 0 && seconds <= maxSeconds))
    throw new UsageError(`--time-limit must be seconds above 0, up to ${maxSeconds}, not ${said.timeLimit}.`);
  return {
    ...(share !== undefined && { share }),
    ...Object.fromEntries(named),
    ...(seconds !== undefined && { timeLimitSeconds: seconds }),
  };
}

function choose<T extends string>(flag: string, word: string | undefined, known: readonly T[]): T | undefined {
  const found = known.find((one) => one === word);
  if (word === undefined || found !== undefined) return found;
  throw new UsageError(`${flag} must be one of ${known.join(", ")}, not ${JSON.stringify(word)}.`);
}

/** Programs that do what the folder says they are started in. */
const local = new Set("npm pnpm yarn bun make just cargo go uv poetry mvn gradle".split(" "));

/** A command that means this folder, by a file of it or as such programs do, is another in another folder. */
function atHome(one: UpstreamConfig, cwd: string): UpstreamConfig {
  const { command, args = [] } = one;
  if (command === undefined || one.cwd !== undefined) return one;
  const isHere = (word: string) => word !== "" && !path.isAbsolute(word) && existsSync(path.join(cwd, word));
  return local.has(command) || [...(/[\\/]/.test(command) ? [command] : []), ...args].some(isHere)
    ? { ...one, cwd }
    : one;
}

const single = ["url", "name", "transport", "share", "prefix", "time-limit"];
const repeated = ["header", ...lists];

/** The quick reading for a front: undefined for what is more than this, or wrong, which the verb itself says. */
export function readWrapWords(
  [verb, ...words]: readonly string[],
  cwd: string,
  variables: WrapVariables,
): Wrap | undefined {
  if (verb !== "wrap") return undefined;
  const said: Record<string, string | string[]> = {};
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === "--") {
      said.server = words.slice(at + 1);
      break;
    }
    if (word === "--no-color") continue;
    const [, name = "", given] = /^--([a-z-]+)(?:=(.*))?$/s.exec(word) ?? [];
    const value = given ?? words[++at];
    if (value === undefined || value === "--") return undefined;
    if (repeated.includes(name)) said[name] = [...((said[name] as string[] | undefined) ?? []), value];
    else if (single.includes(name)) said[name === "time-limit" ? "timeLimit" : name] = value;
    else return undefined;
  }
  try {
    return toWrap({ ...said, variables } as WrapSaid, cwd);
  } catch {
    return undefined;
  }
}
