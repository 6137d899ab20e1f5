import { LineSplitter } from "../../src/wire/lines.ts";
import { ownProgram, type ProgramContext } from "./programs.ts";
import type { Fields } from "./wire.ts";

interface Script {
  /** What `initialize` declares. Default: tools. */
  readonly capabilities?: object;
  /** What tools/list lists. Default: `count`. */
  readonly tools?: () => readonly unknown[];
  /**
   * The lines for a request: objects are written as JSON, texts as they are. Default, or undefined: a valid answer.
   * An empty list leaves the request without an answer.
   */
  readonly answer?: (asked: Asked, program: ProgramContext) => Lines | Promise<Lines>;
}

type Lines = readonly (object | string)[] | undefined;

export interface Asked {
  readonly id: number;
  readonly method: string;
  readonly params: Fields;
}

/** A tool without arguments. */
export const plainTool = (name: string) => ({ name, inputSchema: { type: "object" } });

/** A server of 2025-11-25 over stdio in the test's process, each of whose lines a test may write. */
export function scriptedUpstream({ capabilities = { tools: {} }, tools, answer }: Script = {}) {
  const results: Readonly<Record<string, (params: Fields) => object>> = {
    initialize: ({ protocolVersion }) => ({
      protocolVersion,
      capabilities,
      serverInfo: { name: "scripted", version: "1" },
    }),
    ping: () => ({}),
    "tools/list": () => ({ tools: tools?.() ?? [plainTool("count")] }),
    "tools/call": ({ name }) => ({ content: [{ type: "text", text: `${name} is done` }] }),
  };
  const [command, script] = ownProgram((program) => {
    const { stdin, stdout } = program;
    const splitter = new LineSplitter();
    const receive = async ({ id, method = "", params = {} }: Partial<Asked>) => {
      if (id === undefined) return;
      const result = results[method]?.(params);
      const error = { code: -32601, message: `${method} is not known here` };
      const usual = { jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) };
      for (const said of (await answer?.({ id, method, params }, program)) ?? [usual])
        stdout.write(`${typeof said === "string" ? said : JSON.stringify(said)}\n`);
    };
    stdin.on("data", (chunk: Buffer) => {
      for (const line of splitter.push(chunk)) void receive(JSON.parse(String(line)));
    });
  });
  return { command, args: [script] };
}
