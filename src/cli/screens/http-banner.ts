import type { CatalogEntry } from "../../command/catalog.ts";
import { thisProgram } from "../../program/program.ts";
import { quoteWord } from "../remote/server-target.ts";
import type { Terminal } from "../terminal.ts";

export interface BannerFacts {
  readonly url: string;
  /** What hosts are to call the server. */
  readonly name: string;
  readonly version: string;
  readonly entries: readonly CatalogEntry[];
  /** The servers of others that it stands in front of, and has nothing else than. */
  readonly wrapped?: readonly string[] | undefined;
  readonly home: string;
  /** What is typed to start it again: in a clone, where npm has started it, that is not its name alone. */
  readonly program: string;
  readonly tokenFile: string;
  readonly token: string;
  readonly allowAnonymous: boolean;
}

/**
 * What a client needs, ready to paste. The token itself is shown to a person at a terminal alone: what is no terminal
 * may be a log, and the command line of a program is seen by everybody on the machine, so the shell's line takes it
 * from its file and hands it on by a pipe.
 */
export function httpBanner(facts: BannerFacts, terminal: Terminal): string {
  const { bold, cyan, dim } = terminal.colors;
  const { url } = facts;
  const token = terminal.isLive ? facts.token : "<token>";
  const blocks = [
    `${bold(thisProgram.title)} ${facts.version} ${toWork(facts)} at ${cyan(url)}`,
    paragraph(toDoor(facts), [`Authorization: Bearer ${token}`], terminal),
    paragraph("In a host that takes an address, as an entry of its MCP settings:", toEntry(facts, token), terminal),
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

/** What others' servers have may not be known yet. */
function toWork({ entries, wrapped }: BannerFacts): string {
  if (wrapped !== undefined) return `stands in front of ${wrapped.join(", ")}`;
  return `serves ${entries.length} command${entries.length === 1 ? "" : "s"}`;
}

function toDoor({ allowAnonymous, wrapped }: BannerFacts): string {
  if (!allowAnonymous) return "Who sends this header is you, and nobody else is let in:";
  if (wrapped !== undefined)
    return `Strangers are let in, to all that ${wrapped.join(", ")} can do; who sends this header is you:`;
  return "Strangers are let in, but to no bundled command; who sends this header is you:";
}

function toEntry({ name, url }: BannerFacts, token: string): string[] {
  const server = { type: "http", url, headers: { Authorization: `Bearer ${token}` } };
  return JSON.stringify({ mcpServers: { [name]: server } }, undefined, 2).split("\n");
}

function toTry({ entries, url, tokenFile, program, wrapped }: BannerFacts): [string, string[]] {
  if (entries.length === 0 && thisProgram.authors === undefined && wrapped === undefined)
    return ["A first command:", [`${program} new hello/world`]];
  // What others call their tools is not for a shell.
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
      `  curl -sS ${url} -H @- \\`,
      "    -H 'Content-Type: application/json' \\",
      "    -H 'Accept: application/json, text/event-stream' \\",
      ...request,
    ],
  ];
}
