import { thisProgram } from "../program/program.ts";

/** Verbs of our own, each in a file of its own that is loaded when it is used. */
export const verbs = {
  serve: { summary: "serve the commands to MCP clients: stdio, or --http", load: () => import("./verbs/serve.ts") },
  wrap: {
    summary: "serve any MCP server, with tasks that last: wrap -- <command …> | --url <url> | --from <mcp.json>",
    load: () => import("./verbs/wrap.ts"),
  },
  worker: {
    summary: "run this project's tasks, and serve nobody: as many as you like, on one store",
    load: () => import("./verbs/worker.ts"),
  },
  call: {
    summary: "call a tool of any MCP server: call <url | command | socket> <tool> [key=value …]",
    load: () => import("./verbs/call.ts"),
  },
  tools: { summary: "list the commands as MCP clients see them", load: () => import("./verbs/tools.ts") },
  init: {
    summary: "make a project: a command, its test, and what npm and an editor need: init [folder]",
    load: () => import("./verbs/init.ts"),
  },
  new: { summary: "write a first version of a command: new <domain>/<name>", load: () => import("./verbs/new.ts") },
  tasks: { summary: "list, show, follow, answer and cancel tasks", load: () => import("./verbs/tasks.ts") },
  stats: { summary: "how long commands take", load: () => import("./verbs/stats.ts") },
  hosts: {
    summary: "how long each MCP host waits for a call: hosts [forget <name>]",
    load: () => import("./verbs/hosts.ts"),
  },
  diagnose: {
    summary: "will this server survive in my host: diagnose <url | . | -- command …>",
    load: () => import("./verbs/diagnose.ts"),
  },
  compare: {
    summary: "what changed between two reports: compare <before.json> <after.json>",
    load: () => import("./verbs/compare.ts"),
  },
  setup: { summary: "add this server to the MCP hosts on this machine", load: () => import("./verbs/setup.ts") },
  daemon: {
    summary: "the process that keeps work alive: daemon status|stop|restart|logs",
    load: () => import("./verbs/daemon.ts"),
  },
  upstreams: {
    summary: "the servers that stand behind this one: upstreams status|restart|logs",
    load: () => import("./verbs/upstreams.ts"),
  },
  store: {
    summary: "where tasks are kept: store check|migrate|copy",
    load: () => import("./verbs/store.ts"),
  },
  token: {
    summary: "print the token that makes an HTTP caller the local user",
    load: () => import("./verbs/token.ts"),
  },
  keys: {
    summary: "API keys for callers over HTTP: keys add|list|rotate|revoke",
    load: () => import("./verbs/keys.ts"),
  },
  whoami: {
    summary: "print whom a server takes you for: whoami [--target <server>]",
    load: () => import("./verbs/whoami.ts"),
  },
  completion: {
    summary: "print what makes your shell complete all this: completion bash|zsh|fish",
    load: () => import("./verbs/completion.ts"),
  },
} as const;

export type VerbName = keyof typeof verbs;

/** Those that write commands, or serve others: an author's program has its own. */
const forAuthors: readonly string[] = ["init", "new", "wrap"];

/** The verb of this name; undefined where this program has none. */
export function verbNamed(word: string): (typeof verbs)[VerbName] | undefined {
  return listedVerbs().some(({ name }) => name === word) ? verbs[word as VerbName] : undefined;
}

/** The verbs of this program, with what each does. */
export const listedVerbs = () =>
  Object.entries(verbs)
    .filter(([name]) => thisProgram.authors === undefined || !forAuthors.includes(name))
    .map(([name, { summary }]) => ({ name: name as VerbName, summary }));
