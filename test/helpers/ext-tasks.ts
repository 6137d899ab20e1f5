import {
  Client,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport, type StdioServerParameters } from "@modelcontextprotocol/client/stdio";
import {
  createTaskSessionFromClient,
  DispatchError,
  type JsonRpcResponse,
  type RawClientDispatch,
  resultFromTaskOutcome,
} from "@modelcontextprotocol/ext-tasks/client";
import { modernRevision, tasksExtension } from "../../src/wire/revisions.ts";
import { cleanUp } from "./home.ts";
import { overPipes, toProcess, withQuickPolls } from "./sdk-transport.ts";
import type { Target } from "./server.ts";
import { clientInfo, type Fields, type Message } from "./wire.ts";

export interface ExtOptions {
  /** Beside tasks. */
  readonly capabilities?: object;
  /** `false`: its client does not say that it takes tasks, and gets answers alone. */
  readonly takesTasks?: boolean;
  /** Answers what a server asks, of a call and of a task. */
  readonly answer?: (method: string, params: Fields) => unknown;
}

/** What a client says that it can be asked, and by which method. */
const asking = {
  elicitation: "elicitation/create",
  sampling: "sampling/createMessage",
  roots: "roots/list",
} as const;

/**
 * The SDK's client of 2026-07-28 with ext-tasks on it: `client` takes answers alone, `session` tasks too. Both are gone
 * after the test.
 */
export async function connectExtTasks(
  target: Target | { readonly process: StdioServerParameters },
  { capabilities = {}, answer, takesTasks = true }: ExtOptions = {},
) {
  const client = new Client(clientInfo, {
    capabilities: { ...capabilities, ...(takesTasks && { extensions: { [tasksExtension]: {} } }) },
    versionNegotiation: { mode: { pin: modernRevision } },
  });
  const transport = withQuickPolls(transportTo(target));
  for (const [capability, method] of Object.entries(asking))
    if (answer !== undefined && capability in capabilities)
      client.setRequestHandler(method, async ({ params }) => (await answer(method, { ...params })) as never);
  cleanUp(() => client.close());
  await client.connect(transport);
  const errors: Error[] = [];
  const session = createTaskSessionFromClient(client, {
    endpointId: "scenario",
    rawDispatch: dispatchOver(transport),
    v2RequestFraming: { protocolVersion: modernRevision, clientInfo, clientCapabilities: capabilities as Fields },
    onInputRequest: (async ({ kind, params }: { kind: keyof typeof asking; params?: Fields }) =>
      (await answer?.(asking[kind], params ?? {})) ?? { action: "cancel" }) as never,
    onError: (error) => void errors.push(error),
  });
  cleanUp(() => session.close());
  /** As a task where it is one; its result. */
  const run = async (tool: string, input: object = {}) =>
    resultFromTaskOutcome((await (await session.callTool(tool, input as Fields)).settle()).outcome);
  return { client, session, run, errors };
}

function transportTo(target: Target | { readonly process: StdioServerParameters }): Transport {
  if ("process" in target) return new StdioClientTransport(target.process);
  if ("pipes" in target) return overPipes(target.pipes) as Transport;
  if ("words" in target) return new StdioClientTransport(toProcess(target));
  return new StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: { ...target.headers } } });
}

/** Sends below the SDK, which takes no handle for an answer. The ids are texts, so that none is one of the SDK's. */
function dispatchOver(transport: Transport): RawClientDispatch {
  const waiting = new Map<unknown, (response: JsonRpcResponse) => void>();
  const deliver = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const { id, method, result, error } = message as Message;
    const take = method === undefined ? waiting.get(id) : undefined;
    if (take === undefined) return deliver?.(message, extra);
    waiting.delete(id);
    take(error === undefined ? { kind: "result", result: result as never } : { kind: "error", error: error as never });
  };
  let last = 0;
  return (request, { signal, context } = {}) =>
    new Promise((resolve, reject) => {
      const id = `task-${++last}`;
      waiting.set(id, resolve);
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      const options = {
        ...(context?.headers && { headers: context.headers }),
        ...(signal && { requestSignal: signal }),
      };
      transport
        .send({ jsonrpc: "2.0", id, ...(request as object) } as JSONRPCMessage, options as never)
        .catch((error: unknown) => reject(new DispatchError(String(error))));
    });
}
