import { thisProgram } from "../../program/program.ts";
import { flag, operand } from "../completion/grammar.ts";
import { toolArguments, toolNames } from "../completion/tool-words.ts";
import { reachFlags, resultFlags, targets } from "../flags.ts";
import type { Verb } from "../verb.ts";

export const verb: Verb = {
  description: `Call a tool of any MCP server, and follow it to its result.

The target is one of
  https://host/mcp     a URL
  unix:<path>, *.sock  a Unix socket
  "node server.js"     a command line in one word; no shell reads it
  .                    this project's own server
Behind -- it is the server's command line, and the first word is the tool.`,
  get usage() {
    return `<target> <tool> [key=value …] [options]\n       ${thisProgram.name} call <tool> [key=value …] [options] -- <command> [argument …]`;
  },
  flags: [
    flag("--args <json>", "the arguments as one JSON object, sent as they are"),
    ...resultFlags,
    flag("--async", "ask for a task, follow it, and tell its story"),
    flag("--detach", "ask for a task, print its id and leave"),
    flag("--wait", "wait for the result, which is the default"),
    flag("--task-ttl <ms>", "as a task: how long its result shall be kept"),
    flag("--poll-interval <ms>", "as a task: how often to look, until the server says how often"),
    flag("--timeout <seconds>", "cancel after this long, with exit code 124"),
    flag("--new", "start another run even if an equal one is live"),
    flag("--idempotency-key <key>", "one key, one run: a repeated call gets the first one's result"),
    ...reachFlags,
  ],
  operands: [operand("[target]", targets), operand("[tool]", toolNames), operand("[arguments...]", toolArguments)],
  takesServer: true,
  get notes() {
    return `
Examples:
  $ ${thisProgram.name} call . report_build quarter=Q3 format=pdf
  $ ${thisProgram.name} call https://example.org/mcp crawl site=example.org --token-env TOKEN --async
  $ ${thisProgram.name} call echo message=hi -- npx -y @modelcontextprotocol/server-everything

Exit codes: 0 done or left alone, 1 the tool or the server said no, 2 wrong words,
124 timed out, 130 cancelled.
`;
  },
  async run(typed) {
    const { callRemoteTool } = await import("../remote/call-remote-tool.ts");
    return await callRemoteTool(typed);
  },
};
