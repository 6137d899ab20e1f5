import { systemClock } from "../clock.ts";
import type { Caller } from "../command/caller.ts";
import { type ForeignRequest, type JsonObject, type Relay, ServerGone } from "../command/foreign.ts";
import { CommandError, messageOf, ProtocolError, RpcCode, ShuttingDown } from "../errors.ts";
import { createFirstNumber } from "../ids.ts";
import { linksIn } from "../mcp/guest-calls.ts";
import type { GuestClient } from "../mcp/guest-client.ts";
import { RunClient } from "../mcp/run-client.ts";
import type { Id } from "../wire/in-flight.ts";
import { fieldsOf, type Json, textOf } from "../wire/json.ts";
import { ConnectionError, MalformedAnswer } from "../wire/peer-errors.ts";
import { metaKeys, paramHeaders } from "../wire/request-envelope.ts";
import { tasksExtension } from "../wire/revisions.ts";
import { declaredTo } from "./declared-to.ts";
import { followLegacy, followModern, type UpstreamTask } from "./follow-upstream-task.ts";
import { passedMeta, withoutHop } from "./passing-client.ts";
import { type LeftStream, StreamMarks } from "./stream-marks.ts";
import type { UpstreamConnection } from "./upstream-connection.ts";
import { seesReasons, UpstreamDown } from "./upstream-down.ts";
import type { UpstreamRequest } from "./upstream-request.ts";

/** How often a tool may send its call back with questions. */
const maxRounds = 100;
/** An upstream that is one of ours must not join calls of ours, which may be different callers'. */
const isOurs = { "meanwhile/new": true };
/** How often a call is sent that certainly has not been heard, or may be heard twice without harm. */
const maxSends = 3;

/** The connection that a call has while it lasts. */
export interface CallLine {
  /** At once where it is open. */
  connect(): UpstreamConnection | Promise<UpstreamConnection>;
  /** The call is over. */
  end(): void;
}

export interface CalledUpstream {
  /** Of the upstream, in a sentence. */
  readonly upstream: string;
  readonly listing: Json;
  /** Running it again does no harm. */
  readonly isSafe: boolean;
  /** See `Upstream.explain`. */
  readonly explain: (caller: Caller, sentence: string, reason: string) => string;
}

/**
 * What a call leaves behind for the next attempt: a task of the upstream's, how far its stream has come, or the answers to
 * its questions.
 */
interface Left {
  readonly task?: UpstreamTask;
  readonly stream?: LeftStream;
  readonly round?: { readonly inputResponses: Json; readonly requestState?: unknown };
}

/**
 * One call of an upstream's tool. It is sent again only where it was certainly not heard, or where that does no harm; a
 * task of the upstream's own is followed, and taken up again by the next attempt.
 */
export class UpstreamCall {
  readonly #tool: CalledUpstream;
  readonly #input: unknown;
  readonly #relay: Relay;
  readonly #line: CallLine;
  readonly #client: GuestClient;
  readonly #marks: StreamMarks;
  #sends = 0;
  /** Its task is followed. */
  #isFollowed = false;
  /** The session is needed no longer than the call. */
  #endSession: (() => void) | undefined;

  constructor(tool: CalledUpstream, input: unknown, relay: Relay, line: CallLine) {
    this.#tool = tool;
    this.#input = input;
    this.#relay = relay;
    this.#line = line;
    this.#client = new RunClient(relay);
    this.#marks = new StreamMarks((stream) => relay.leave({ stream }, { isSafe: true }), systemClock);
  }

  async answer(): Promise<JsonObject> {
    try {
      const left = this.#relay.leftBehind as Left | undefined;
      return await (left === undefined ? this.#inRounds(this.#givenAhead()) : this.#answer(left));
    } catch (error) {
      await this.#marks.stop();
      // Nobody finds it again.
      if (error instanceof ServerGone) await this.#relay.leave({}, { isSafe: false });
      throw error instanceof MalformedAnswer ? error.naming(`The upstream ${this.#tool.upstream}`, this.#name) : error;
    } finally {
      await this.#marks.stop();
      if (!this.#goesOn()) this.#endSession?.();
      this.#line.end();
    }
  }

  /** What an earlier attempt has begun is found again; only where that may run twice, and is lost, it begins anew. */
  async #answer({ task, stream, round }: Left): Promise<JsonObject> {
    try {
      if (task !== undefined) return await this.#follow(await this.#connect(), task);
      if (stream !== undefined) return await this.#takeUp(await this.#connect(), stream);
    } catch (error) {
      if (!(this.#tool.isSafe && error instanceof ServerGone)) throw error;
    }
    return await this.#inRounds(round ?? this.#givenAhead());
  }

  #givenAhead(): Left["round"] {
    const { responses } = this.#relay.origin.client ?? {};
    return responses === undefined ? undefined : { inputResponses: responses };
  }

  /** Since 2026-07-28 it answers with its questions, and is called again with the answers. */
  async #inRounds(first: Left["round"]): Promise<JsonObject> {
    let more: Json = first ?? {};
    for (let round = 1; round <= maxRounds; round++) {
      const { resultType, ...result } = await this.#send(more);
      if (resultType !== "input_required") return result;
      // It waits for nothing but answers: whoever comes after us may put them.
      await this.#relay.leave({ ...(round > 1 && { round: more }) }, { isSafe: true });
      const inputResponses = await this.#ask(fieldsOf(result.inputRequests));
      const { requestState } = result;
      more = { inputResponses, ...(requestState !== undefined && { requestState }) };
      await this.#relay.leave({ round: more }, { isSafe: true });
    }
    throw new ProtocolError(RpcCode.Internal, `${this.#name} has asked ${maxRounds} times without an end.`);
  }

  async #ask(requests: Json): Promise<Json> {
    const asked = Object.entries(requests).map(async ([key, request]) => {
      const { method, params } = fieldsOf(request);
      const question = { method: textOf(method) ?? "", params: fieldsOf(params) };
      return [key, await this.#relay.ask(question, { key })] as const;
    });
    return Object.fromEntries(await Promise.all(asked));
  }

  /** Sends the call until it has an answer, or must not be sent again; what has become a task of its own is followed. */
  async #send(more: Json): Promise<Json> {
    for (;;) {
      const connection = await this.#connect();
      // From here on nobody can know how far it has come.
      if (!this.#tool.isSafe) await this.#relay.leave({}, { isSafe: false });
      let answered: Json | Begun;
      try {
        answered = await this.#sendOn(connection, more);
      } catch (error) {
        if (this.#relay.signal.aborted || !(error instanceof ConnectionError)) throw error;
        this.#sends += 1;
        if (!(error.isUnsent || this.#tool.isSafe)) throw new ServerGone(this.#tool.upstream, this.#lost(error));
        // One that has too much to do has been waited for as long as anybody waits.
        if (this.#sends >= maxSends || error.status === 429) throw this.#failure(this.#lost(error), error);
        continue;
      }
      return answered instanceof Begun ? await this.#follow(connection, answered.task, answered.by) : answered;
    }
  }

  #lost(error: ConnectionError): string {
    const { isUnsent, retryAfterMs } = error;
    const how = isUnsent ? `has not taken ${this.#name}` : `was lost in the middle of ${this.#name}`;
    const again = retryAfterMs === undefined ? "" : ` It may be asked again in ${Math.ceil(retryAfterMs / 1000)} s.`;
    const { upstream, explain } = this.#tool;
    return `${explain(this.#relay.caller, `The upstream ${upstream} ${how}.`, messageOf(error))}${again}`;
  }

  /** With its cause for the local user alone: clients may be shown causes. */
  #failure(sentence: string, cause: Error): CommandError {
    return new CommandError(sentence, seesReasons(this.#relay.caller) ? { cause } : {});
  }

  #connect(): UpstreamConnection | Promise<UpstreamConnection> {
    const opening = this.#line.connect();
    if (!(opening instanceof Promise)) return opening;
    return opening.catch((error: unknown) => {
      this.#relay.signal.throwIfAborted();
      if (error instanceof UpstreamDown) throw this.#failure(error.messageFor(this.#relay.caller), error);
      throw error;
    });
  }

  #sendOn(connection: UpstreamConnection, more: Json): Promise<Json | Begun> {
    if (connection.era === "modern") return this.#sendModern(connection, more);
    const support = fieldsOf(this.#tool.listing.execution).taskSupport;
    const hasTasks =
      fieldsOf(fieldsOf(fieldsOf(connection.hello.capabilities.tasks).requests).tools).call !== undefined;
    if (hasTasks && (support === "required" || (support === "optional" && this.#relay.isTask)))
      return this.#asTask(connection);
    const answer = this.#request(connection, {}, this.#marked(connection));
    // Clients before 2026-07-28 know that error.
    return this.#relay.origin.client?.isModern === true
      ? answer.catch((error: unknown) => this.#openLinks(connection, error))
      : answer;
  }

  async #sendModern(connection: UpstreamConnection, more: Json): Promise<Json | Begun> {
    const result = await this.#request(connection, more);
    if (result.resultType !== "task") return result.resultType === "input_required" ? result : withoutHop(result);
    const task = toFollowed(result, "modern");
    this.#relay.becomesTask();
    await this.#relay.leave({ task }, { isSafe: true });
    return new Begun(task);
  }

  async #asTask(connection: UpstreamConnection): Promise<Begun> {
    let begun: Id = "";
    const answered = await this.#request(connection, { task: {} }, { onId: (id) => (begun = id) });
    const { session } = connection;
    const task = { ...toFollowed(fieldsOf(answered.task), "legacy"), ...(session !== undefined && { session }) };
    await this.#relay.leave({ task }, { isSafe: true });
    return new Begun(task, begun);
  }

  /** The stream of a call over HTTP can be taken up where its server counts what it sends on it. */
  #marked(connection: UpstreamConnection): CallTerms {
    if (connection.session === undefined) return {};
    const id = createFirstNumber();
    return {
      id,
      onMark: (mark) => {
        this.#endSession ??= connection.keepSession();
        this.#marks.heard({ id, mark });
      },
      goesOn: () => this.#goesOn(),
    };
  }

  /** Somebody comes back to it: we have to leave, and it is on record how far it has come. */
  #goesOn(): boolean {
    return this.#relay.signal.reason instanceof ShuttingDown && (this.#marks.hasOne || this.#isFollowed);
  }

  /**
   * Follows a task of the upstream's to its end; the call is never sent again. `by`: what works on it was begun by a
   * request that is answered by now, and goes on in its name.
   */
  async #follow(connection: UpstreamConnection, task: UpstreamTask, by?: Id): Promise<JsonObject> {
    const forget = by === undefined ? undefined : connection.worksOn(by, this.#client);
    this.#isFollowed = true;
    this.#endSession ??= connection.keepSession();
    try {
      const terms = { relay: this.#relay, client: this.#client, upstream: this.#tool.upstream };
      if (task.era === "modern") return withoutHop(await followModern(connection, task, terms));
      return await followLegacy(connection, task, terms);
    } catch (error) {
      if (this.#relay.signal.aborted || !(error instanceof ConnectionError)) throw error;
      throw new ServerGone(this.#tool.upstream, this.#lost(error));
    } finally {
      forget?.();
    }
  }

  /** Hears the rest of a stream that an earlier attempt has begun. */
  async #takeUp(connection: UpstreamConnection, { id, mark }: LeftStream): Promise<JsonObject> {
    this.#marks.hasOne = true;
    try {
      return await this.#request(connection, {}, { ...this.#marked(connection), id, from: mark });
    } catch (error) {
      if (this.#relay.signal.aborted || !(error instanceof ConnectionError)) throw error;
      throw new ServerGone(this.#tool.upstream, this.#lost(error));
    }
  }

  async #openLinks(connection: UpstreamConnection, error: unknown): Promise<Json> {
    const links: readonly ForeignRequest[] = linksIn(error);
    if (links.length === 0) throw error;
    const answers = await Promise.all(links.map((link) => this.#relay.ask(link)));
    if (answers.some(({ action }) => action !== "accept")) throw error;
    return await this.#request(connection, {});
  }

  get #name(): string {
    return textOf(this.#tool.listing.name) ?? "";
  }

  /** Who speaks 2026-07-28 says itself what it takes; for whoever else waits here, tasks are followed. */
  get #capabilities(): Json {
    const { isModern, capabilities = {} } = this.#relay.origin.client ?? {};
    const mirrors = isModern === true && !this.#relay.isTask;
    if (mirrors) return { ...declaredTo(capabilities, "modern"), extensions: fieldsOf(capabilities.extensions) };
    return { ...declaredTo(capabilities), extensions: { [tasksExtension]: {} } };
  }

  /** Some arguments are to be headers, too, and which of them may have changed: refused for that, nothing was done yet. */
  async #request(connection: UpstreamConnection, more: Json, terms?: CallTerms): Promise<Json> {
    try {
      return await this.#requestAs(this.#tool.listing, connection, more, terms);
    } catch (error) {
      if (!(error instanceof ProtocolError && error.code === RpcCode.HeaderMismatch)) throw error;
      await connection.hearChange("notifications/tools/list_changed");
      const listing = connection.lists.tools.find(({ name }) => name === this.#name);
      if (listing === undefined) throw error;
      return await this.#requestAs(listing, connection, more, terms);
    }
  }

  #requestAs(
    { inputSchema }: Json,
    connection: UpstreamConnection,
    more: Json,
    { onId, ...terms }: CallTerms = {},
  ): Promise<Json> {
    const { meta, isModern } = this.#relay.origin.client ?? {};
    const input = fieldsOf(this.#input ?? {});
    return connection.request(
      "tools/call",
      (id) => {
        onId?.(id);
        return {
          name: this.#name,
          arguments: this.#input ?? {},
          ...more,
          _meta: { ...passedMeta(meta), ...isOurs, progressToken: id },
        };
      },
      {
        client: this.#client,
        capabilities: this.#capabilities,
        headers: paramHeaders(fieldsOf(inputSchema), input),
        logLevel: isModern === true ? textOf(meta?.[metaKeys.logLevel]) : "debug",
        ...terms,
      },
    );
  }
}

type CallTerms = Pick<UpstreamRequest, "id" | "from" | "onMark" | "goesOn"> & { readonly onId?: (id: Id) => void };

/** The upstream has made a task of a call. */
class Begun {
  readonly task: UpstreamTask;
  readonly by: Id | undefined;

  constructor(task: UpstreamTask, by?: Id) {
    this.task = task;
    this.by = by;
  }
}

function toFollowed(
  { taskId, pollIntervalMs, pollInterval, ttlMs, ttl }: Json,
  era: UpstreamTask["era"],
): UpstreamTask {
  const id = textOf(taskId);
  if (id === undefined) throw new ProtocolError(RpcCode.Internal, "It was called as a task, and named none.");
  const poll = pollIntervalMs ?? pollInterval;
  const kept = ttlMs ?? ttl;
  return {
    era,
    taskId: id,
    ...(typeof poll === "number" && poll > 0 && { pollMs: poll }),
    ...(typeof kept === "number" && kept > 0 && { ttlMs: kept }),
  };
}
