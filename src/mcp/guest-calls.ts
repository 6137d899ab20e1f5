import { type ForeignRequest, type JsonObject, type Relay, ServerGone } from "../command/foreign.ts";
import { ProtocolError, RpcCode } from "../errors.ts";
import type { Id } from "../wire/in-flight.ts";
import { fieldsOf, isObject, type Json, listOf, textOf } from "../wire/json.ts";
import { toEnvelope } from "../wire/request-envelope.ts";
import type { Guest } from "./guest.ts";
import { type GuestClient, mayGiveRoots } from "./guest-client.ts";
import type { Guests } from "./guests.ts";
import { toRpcError } from "./router.ts";
import { RunClient } from "./run-client.ts";

/** How often a tool may send its call back with questions. */
const maxRounds = 100;

/** Calls a guest's tool for a run, as often as the guest asks for more, and gives its result as it is. */
export function callGuestTool(guests: Guests, tool: Json, input: unknown, relay: Relay): Promise<JsonObject> {
  const guest = guests.forCall(relay.origin.client, relay.caller);
  const call = (open: Guest) =>
    new GuestCall(open, tool, input, relay).answer().then(
      (result) => {
        open.used();
        return result;
      },
      (error: unknown) => {
        const isGone = open.isClosed && !relay.signal.aborted;
        open.used();
        throw isGone ? new ServerGone(guests.name) : error;
      },
    );
  return guest instanceof Promise ? guest.then(call, refuseUnmade) : call(guest);
}

/** There is nobody to call: what of that is for clients they are told, as at every other door. */
function refuseUnmade(error: unknown): never {
  const { code, message, data } = toRpcError(error);
  throw new ProtocolError(code, message, data);
}

class GuestCall {
  readonly #guest: Guest;
  readonly #tool: Json;
  readonly #input: unknown;
  readonly #relay: Relay;
  readonly #client: GuestClient;

  constructor(guest: Guest, tool: Json, input: unknown, relay: Relay) {
    this.#guest = guest;
    this.#tool = tool;
    this.#input = input;
    this.#relay = relay;
    this.#client = new RunClient(relay);
  }

  answer(): Promise<JsonObject> {
    const given = this.#mayGiveRoots() ? this.#guest.giveRoots(this.#client) : undefined;
    return given === undefined ? this.#call() : given.then(() => this.#call());
  }

  #mayGiveRoots(): boolean {
    const { isModern, capabilities } = this.#relay.origin.client ?? {};
    if (this.#guest.era !== "legacy" || isModern !== true || capabilities?.roots === undefined) return false;
    return this.#guest.isOfOneCaller || mayGiveRoots(this.#client);
  }

  #call(): Promise<JsonObject> {
    if (this.#guest.era === "modern") return this.#inRounds();
    return fieldsOf(this.#tool.execution).taskSupport === "required" ? this.#asTask() : this.#atOnce();
  }

  /** On 2026-07-28 it answers with its questions, and is called again with the answers. */
  async #inRounds(): Promise<JsonObject> {
    const { responses } = this.#relay.origin.client ?? {};
    let more: Json = responses === undefined ? {} : { inputResponses: responses };
    for (let round = 1; round <= maxRounds; round++) {
      const { resultType, ...result } = await this.#send(more);
      if (resultType !== "input_required") return result;
      more = { inputResponses: await this.#answer(fieldsOf(result.inputRequests)), requestState: result.requestState };
    }
    throw new ProtocolError(RpcCode.Internal, `${this.#name} has asked ${maxRounds} times without an end.`);
  }

  async #answer(requests: Json): Promise<Json> {
    const asked = Object.entries(requests).map(async ([key, request]) => {
      const { method, params } = fieldsOf(request);
      const answer = await this.#relay.ask({ method: textOf(method) ?? "", params: fieldsOf(params) }, { key });
      return [key, answer] as const;
    });
    return Object.fromEntries(await Promise.all(asked));
  }

  /** Before that it asks on its own while it works, or says with an error which links are to be opened first. */
  #atOnce(): Promise<JsonObject> {
    const answer = this.#send({});
    // Clients before 2026-07-28 know that error.
    return this.#relay.origin.client?.isModern === true ? answer.catch((error) => this.#openLinks(error)) : answer;
  }

  async #openLinks(error: unknown): Promise<JsonObject> {
    const links = linksIn(error);
    if (links.length === 0) throw error;
    const answers = await Promise.all(links.map((link) => this.#relay.ask(link)));
    if (answers.some(({ action }) => action !== "accept")) throw error;
    return await this.#send({});
  }

  /** A tool that can be called as a task alone is followed to its end, so that every client can call it. */
  async #asTask(): Promise<JsonObject> {
    let begun: Id = "";
    const { task } = await this.#send({ task: {} }, (id) => (begun = id));
    const taskId = textOf(fieldsOf(task).taskId);
    if (taskId === undefined)
      throw new ProtocolError(RpcCode.Internal, `${this.#name} was called as a task and made none.`);
    const onAbort = () => void this.#guest.request("tasks/cancel", { taskId }).catch(() => undefined);
    this.#relay.signal.addEventListener("abort", onAbort, { once: true });
    // What works on it was begun by a request that is answered by now, and goes on in its name.
    const forget = this.#guest.worksOn(begun, this.#client);
    try {
      return await this.#guest.request("tasks/result", { taskId }, this.#client);
    } finally {
      forget();
      this.#relay.signal.removeEventListener("abort", onAbort);
    }
  }

  get #name(): string {
    return textOf(this.#tool.name) ?? "";
  }

  #send(more: Json, onId?: (id: Id) => void): Promise<Json> {
    const { meta, capabilities } = this.#relay.origin.client ?? {};
    const own =
      this.#guest.era === "modern" ? toEnvelope({ name: "meanwhile", version: "0" }, { ...capabilities }) : {};
    return this.#guest.request(
      "tools/call",
      (id) => {
        onId?.(id);
        return { name: this.#name, arguments: this.#input, ...more, _meta: { ...own, ...meta, progressToken: id } };
      },
      this.#client,
    );
  }
}

/** The links that a server wants opened before it is called again, as it says that on 2025-11-25. */
export function linksIn(error: unknown): readonly ForeignRequest[] {
  if (!(error instanceof ProtocolError) || error.code !== RpcCode.UrlElicitationRequired) return [];
  return listOf(fieldsOf(error.data).elicitations)
    .filter(isObject)
    .map((params) => ({ method: "elicitation/create", params }));
}
