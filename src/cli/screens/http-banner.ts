import type { CatalogEntry } from "../../command/catalog.ts";
import { thisProgram } from "../../program/program.ts";
import { quoteWord } from "../remote/server-target.ts";
import type { Terminal } from "../terminal.ts";

export interface BannerFacts {
  readonly url: string;
  /** The socket file that the server listens on. Undefined for a port. */
  readonly socket?: string | undefined;
  /** The name of the server in a host's settings. */
  readonly name: string;
  readonly version: string;
  readonly entries: readonly CatalogEntry[];
  /** The names of the upstreams of `wrap`. Undefined for a project. */
  readonly wrapped?: readonly string[] | undefined;
  readonly home: string;
  /** The words that start this program: `npx <package>` where npm has started it. */
  readonly program: string;
  /** The options that select the project, such as `--bundled`. Keys of the project are added with the same options. */
  readonly options?: readonly string[] | undefined;
  readonly tokenFile: string;
  readonly token: string;
  readonly allowAnonymous: boolean;
  /** The issuers whose users are accepted. */
  readonly issuers: readonly string[];
}

/**
 * The text that `serve --http` prints: what a client needs, ready to paste. Contains the token only on a terminal,
 * because other output may be a log. The example for a shell reads the token from its file, because all users of the
 * machine see the arguments of a process.
 */
export function httpBanner(facts: BannerFacts, terminal: Terminal): string {
  const { bold, cyan, dim } = terminal.colors;
  const { url, socket } = facts;
  const token = terminal.isLive ? facts.token : "<token>";
  const entry = "In a host that takes an address, as an entry of its MCP settings:";
  const blocks = [
    `${bold(thisProgram.title)} ${facts.version} ${toWork(facts)} ${socket === undefined ? "at" : "on the socket"} ${cyan(socket ?? url)}`,
    ...(socket === undefined
      ? []
      : ["  Only you can connect. Hosts take no sockets; your own programs and proxies do."]),
    paragraph(toDoor(facts), [`Authorization: Bearer ${token}`], terminal),
    ...(socket === undefined ? [paragraph(entry, toEntry(facts, token), terminal)] : []),
    ...(terminal.isLive
      ? []
      : [`  <token> is what lies in ${quoteWord(facts.tokenFile)}; ${facts.program} token prints it.`]),
    paragraph(...toTry(facts), terminal),
    dim(`  Home ${facts.home} · Ctrl-C stops it.`),
  ];
  return `\n${blocks.join("\n\n")}\n\n`;
}

function paragraph(title: string, lines: readonly string[], { colors }: Terminal): string {
  return [`  ${colors.dim(title)}`, "", ...lines.map((line) => `    ${line}`)].join("\n");
}

/** The number of commands, or for `wrap` the names of the upstreams, whose tools may not be known yet. */
function toWork({ entries, wrapped }: BannerFacts): string {
  if (wrapped !== undefined) return `stands in front of ${wrapped.join(", ")}`;
  return `serves ${entries.length} command${entries.length === 1 ? "" : "s"}`;
}

function toDoor({ allowAnonymous, wrapped, issuers, program, options = [] }: BannerFacts): string {
  const keys = `other clients need a key (${[program, ...options.map(quoteWord)].join(" ")} keys add <name>)`;
  const signIn = `Users sign in at ${issuers.join(" or ")}`;
  // No command adds keys for a server that `wrap` has started.
  if (!allowAnonymous && wrapped !== undefined)
    return issuers.length === 0 ? "A client with this header is you:" : `${signIn}; a client with this header is you:`;
  if (!allowAnonymous && issuers.length > 0) return `${signIn}, ${keys}; a client with this header is you:`;
  if (!allowAnonymous) return `A client with this header is you; ${keys}:`;
  if (wrapped !== undefined)
    return `Strangers are let in, to all that ${wrapped.join(", ")} can do; who sends this header is you:`;
  return "Strangers are let in, but to no bundled command; who sends this header is you:";
}

function toEntry({ name, url }: BannerFacts, token: string): string[] {
  const server = { type: "http", url, headers: { Authorization: `Bearer ${token}` } };
  return JSON.stringify({ mcpServers: { [name]: server } }, undefined, 2).split("\n");
}

function toTry({ entries, url, socket, tokenFile, program, wrapped }: BannerFacts): [string, string[]] {
  if (entries.length === 0 && thisProgram.authors === undefined && wrapped === undefined)
    return ["A first command:", [`${program} new hello/world`]];
  // Names of an upstream's tools are not put into a command for a shell.
  const harmless = (wrapped === undefined ? entries : []).find(
    ({ toolName, command }) =>
      /^[\w-]+$/.test(toolName) &&
      command.effects === "read" &&
      ((command.inputSchema.required ?? []) as string[]).length === 0,
  );
  const request =
    harmless === undefined
      ? [`    -d '{ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }'`]
      : [
          `    -d '{ "jsonrpc": "2.0", "id": 1, "method": "tools/call",`,
          `          "params": { "name": "${harmless.toolName}" } }'`,
        ];
  return [
    "From a shell:",
    [
      `sed 's/^/Authorization: Bearer /' ${quoteWord(tokenFile)} |`,
      `  curl -sS ${socket === undefined ? "" : `--unix-socket ${quoteWord(socket)} `}${url} -H @- \\`,
      "    -H 'Content-Type: application/json' \\",
      "    -H 'Accept: application/json, text/event-stream' \\",
      ...request,
    ],
  ];
}
