import type { Caller } from "../command/caller.ts";
import { ProtocolError, RpcCode } from "../errors.ts";
import type { GuestClient } from "../mcp/guest-client.ts";
import { type GuestView, joinCapabilities } from "../mcp/guest-view.ts";
import { badParams } from "../mcp/params.ts";
import type { Result } from "../mcp/request.ts";
import { excerptOf, fieldsOf, isObject, type Json, listOf, textOf } from "../wire/json.ts";
import { ConnectionError, MalformedAnswer } from "../wire/peer-errors.ts";
import { PassingClient, passedParams, toOwnInputRequired, withoutHop } from "./passing-client.ts";
import type { UpstreamConnection } from "./upstream-connection.ts";
import { forClient } from "./upstream-down.ts";
import { type ListedName, listFor } from "./upstream-lists.ts";
import type { KnownUpstream } from "./upstream-memory.ts";

export interface ViewOptions {
  /** Of the upstream, in a sentence. */
  readonly name: string;
  readonly caller: Caller;
  /** See `Upstream.explain`. */
  readonly explain: (sentence: string, reason: string) => string;
  /** What is told before anybody has asked the upstream itself. */
  readonly known: () => KnownUpstream;
  readonly connect: () => Promise<UpstreamConnection>;
  /** Whether a tool of this name is served at all. */
  readonly isServed: (tool: string) => boolean;
  /** What the client can do, for requests of 2026-07-28. */
  readonly capabilities: Json;
  readonly logLevel: () => string | undefined;
  /** See `GuestView`. */
  readonly isAlone: boolean;
  /** Its client speaks 2026-07-28, and takes what such a server answers as it is. */
  readonly isModern: boolean;
}

/** How often an upstream may send a request back with questions. */
const maxRounds = 100;
const askLimitMs = 24 * 60 * 60 * 1000;

/** One upstream as one client sees it: lists from what is known, the rest by asking. */
export class UpstreamView implements GuestView {
  readonly #options: ViewOptions;
  #read:
    | {
        readonly known: KnownUpstream;
        readonly tools: ReadonlyMap<string, Json>;
        readonly prompts: ReadonlySet<string>;
      }
    | undefined;

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  get tools(): ReadonlyMap<string, Json> {
    return this.#known.tools;
  }

  get prompts(): ReadonlySet<string> {
    return this.#known.prompts;
  }

  get isAlone(): boolean {
    return this.#options.isAlone;
  }

  get capabilities(): Json {
    return this.#options.known().hello.capabilities;
  }

  capabilityOf(method: string): boolean {
    const name = method === "completion/complete" ? "completions" : (method.split("/", 1)[0] ?? "");
    return this.capabilities[name] !== undefined;
  }

  mergeCapabilities(ours: Json): Json {
    return joinCapabilities(this.capabilities, ours, this.isAlone);
  }

  async request(method: string, params: Json, client?: GuestClient): Promise<Result> {
    const list = listFor(method);
    const { connect, caller, isModern, isServed, known } = this.#options;
    if (list !== undefined && client !== undefined && this.#mustAskFor(list, method, known()))
      return await this.#askForList(list, { method, params }, client);
    if (list !== undefined) return { [list]: params.cursor === undefined ? this.#listed(list) : [] };
    // What is not served is not there, whoever knows its name.
    const tool = method === "tools/call" ? (textOf(params.name) ?? "") : undefined;
    if (tool !== undefined && !isServed(tool)) throw badParams(`Tool ${excerptOf(tool)} not found`);
    const connection = await forClient(connect(), caller);
    const ask = (more: Json) => this.#ask(connection, method, { ...params, ...more }, client);
    if (connection.era === "legacy") return await ask({});
    const first = await ask({});
    return isModern || client === undefined ? first : await answerRounds(first, ask, client);
  }

  async listen(wanted: Json, tell: (method: string, params: Json) => void, over: AbortSignal): Promise<Json> {
    const { connect, caller } = this.#options;
    return await (await forClient(connect(), caller)).listen(wanted, tell, over);
  }

  #listed(name: ListedName): readonly Json[] {
    const items = this.#options.known().lists[name];
    return name === "tools" ? [...this.tools.values()] : items;
  }

  /** True for a list that was not read, and for one that the upstream does not offer: the upstream answers for itself. */
  #mustAskFor(list: ListedName, method: string, { lists }: KnownUpstream): boolean {
    return lists.unread?.includes(list) === true || (this.isAlone && !this.capabilityOf(method));
  }

  /** A list that the upstream has not given before: the client gets the list, or the upstream's own error. */
  async #askForList(
    list: ListedName,
    { method, params }: { readonly method: string; readonly params: Json },
    client: GuestClient,
  ): Promise<Result> {
    const { connect, caller } = this.#options;
    const connection = await forClient(connect(), caller);
    const result = await this.#ask(connection, method, params, client);
    // Its tools become commands when they are known.
    if (this.capabilityOf(method))
      void connection.hearChange(`notifications/${list === "resourceTemplates" ? "resources" : list}/list_changed`);
    if (list !== "tools") return result;
    return {
      ...result,
      tools: listOf(result.tools).filter((tool) => isTool(tool) && this.#options.isServed(tool.name)),
    };
  }

  async #ask(
    connection: UpstreamConnection,
    method: string,
    params: Json,
    client: GuestClient | undefined,
  ): Promise<Result> {
    const passing = client === undefined ? undefined : new PassingClient(client);
    const isFollowed = fieldsOf(params._meta).progressToken !== undefined;
    const { name, capabilities, logLevel, explain } = this.#options;
    const asked = connection.request(method, (id) => passedParams(params, isFollowed ? id : undefined), {
      client: passing,
      capabilities,
      logLevel: logLevel(),
    });
    const result = await asked.catch((error: unknown) => {
      if (error instanceof MalformedAnswer)
        throw new ProtocolError(RpcCode.Internal, error.naming(`The upstream ${name}`, method).message);
      if (!(error instanceof ConnectionError)) throw error;
      throw new ProtocolError(RpcCode.Internal, explain(`The upstream ${name} was lost in ${method}.`, error.message));
    });
    // What it asks for is for the client to answer, who has to see it.
    return result.resultType === "input_required" ? toOwnInputRequired(result) : withoutHop(result);
  }

  get #known() {
    const known = this.#options.known();
    if (this.#read?.known !== known) {
      const served = known.lists.tools.filter((tool) => isTool(tool) && this.#options.isServed(tool.name));
      this.#read = {
        known,
        tools: new Map(served.map((tool) => [textOf(tool.name) ?? "", tool])),
        prompts: new Set(known.lists.prompts.map(({ name }) => textOf(name) ?? "")),
      };
    }
    return this.#read;
  }
}

/** True for a tool with a name and a schema: clients refuse a whole list for one without them. */
function isTool(tool: unknown): tool is Json & { readonly name: string } {
  const { name, inputSchema } = fieldsOf(tool);
  return textOf(name) !== undefined && name !== "" && isObject(inputSchema);
}

/** Puts what an upstream of 2026-07-28 asks to a client from before, and asks again with the answers. */
async function answerRounds(first: Result, ask: (more: Json) => Promise<Result>, client: GuestClient): Promise<Result> {
  let result = first;
  for (let round = 0; result.resultType === "input_required"; round++) {
    if (round === maxRounds)
      throw new ProtocolError(RpcCode.Internal, `It has asked ${maxRounds} times without an end.`);
    const asked = Object.entries(fieldsOf(result.inputRequests)).map(async ([key, request]) => {
      const { method, params } = fieldsOf(request);
      const options = { signal: client.signal, timeoutMs: askLimitMs };
      return [key, await client.ask(textOf(method) ?? "", fieldsOf(params), options)] as const;
    });
    const inputResponses = Object.fromEntries(await Promise.all(asked));
    result = await ask({
      inputResponses,
      ...(result.requestState !== undefined && { requestState: result.requestState }),
    });
  }
  return result;
}
