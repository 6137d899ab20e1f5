import { RpcCode } from "../../errors.ts";
import { fieldsOf } from "../../wire/json.ts";
import { parseLine, toWaitedLine } from "../../wire/lines.ts";
import { isRequestId, metaKeys, proxyNotice } from "../../wire/request-envelope.ts";
import { tasksExtension } from "../../wire/revisions.ts";

/**
 * What a front remembers of an MCP session, so that it can go on with another daemon: how it began (revisions before
 * 2026-07-28 have state), and which requests are still without an answer.
 */

interface Request {
  readonly id: string | number;
  readonly method: string;
  readonly line: Buffer;
  /** Where it ended in what this daemon was sent. */
  endByte: number;
  /** When the client sent it, on the monotonic clock. */
  readonly arrivedAt: number;
  /** Asked a second time already: what ends one daemon after another is not asked a third time. */
  isRepeated: boolean;
  /** A subscription that the client knows to stand. */
  isAcknowledged: boolean;
}

/** A list that a client was told in the daemon's place, which the daemon has still to confirm. */
interface Told {
  readonly line: string;
  readonly result: string;
}

interface Message {
  readonly jsonrpc?: string;
  readonly id?: string | number;
  readonly method?: string;
  readonly result?: unknown;
  readonly params?: {
    readonly text?: unknown;
    readonly uri?: string;
    readonly requestId?: string | number;
    readonly _meta?: Readonly<Record<string, unknown>>;
  } | null;
}

/** Asking these twice changes nothing. */
const repeatable = new Set([
  "initialize",
  "server/discover",
  "ping",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
  "completion/complete",
  "tasks/get",
  "tasks/list",
  "tasks/result",
  "subscriptions/listen",
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe",
]);

/** The lists whose changes clients hear of. */
const changeable: readonly string[] = ["tools", "prompts"];
const lostCall =
  "The daemon that ran this call has ended, so its outcome is not known. It is not run again by itself: check what it has done, then call again. What had become a task goes on: task_result or task_list shows it.";
const lostRequest = "The daemon that was asked has ended before it answered; ask again.";
const unheard = (why: string, isCall: boolean) =>
  `${isCall ? "The call was not run" : "Nobody was asked"}: no daemon could be reached. ${why} Mend that, then ${isCall ? "call" : "ask"} again.`;

export class Session {
  readonly #pending = new Map<string | number, Request>();
  /** Answers to what we asked ourselves, which the client must not see. */
  readonly #swallowed = new Set<string>();
  /** What the daemon has asked the client, by id. */
  readonly #asked = new Set<string | number>();
  #initialize: string | undefined;
  #initialized: Buffer | undefined;
  #logLevel: string | undefined;
  readonly #subscribed = new Map<string, string>();
  /** The last request for the tools, of a client that takes tasks of 2026-07-28: its calls are answered as it was listed. */
  #listed: string | undefined;
  #replays = 0;
  /** By method. */
  readonly #told = new Map<string, Told>();
  /** What was asked again for its sake, by the id of ours. */
  readonly #checks = new Map<string, string>();
  /** Lists of which the client has an older one. */
  readonly #outdated = new Set<string>();
  #news: object[] = [];
  #notices: string[] = [];

  /** True while an answer is owed that can still come. A subscription that stands is answered when it ends. */
  get isOwed(): boolean {
    return [...this.#pending.values()].some(({ isAcknowledged }) => !isAcknowledged);
  }

  /** The client sent this line at `arrivedAt`, and it was forwarded; it ended at this byte. */
  sent(line: Buffer, endByte = 0, arrivedAt = 0): void {
    const message = parse(line);
    if (message?.method === undefined) {
      if (message?.id !== undefined) this.#asked.delete(message.id);
      return;
    }
    this.#remember(message, line);
    const { id, method } = message;
    // What the daemon refuses as no request gets its one answer without an id.
    if (message.jsonrpc === "2.0" && isRequestId(id))
      this.#pending.set(id, { id, method, line, endByte, arrivedAt, isRepeated: false, isAcknowledged: false });
    else if (method === "notifications/cancelled") this.#pending.delete(message.params?.requestId ?? "");
  }

  #remember({ method, params }: Message, line: Buffer): void {
    if (method === "initialize") this.#initialize = line.toString("utf8");
    else if (method === "notifications/initialized") this.#initialized = line;
    else if (method === "logging/setLevel") this.#logLevel = line.toString("utf8");
    else if (method === "resources/subscribe" && params?.uri !== undefined)
      this.#subscribed.set(params.uri, line.toString("utf8"));
    else if (method === "resources/unsubscribe" && params?.uri !== undefined) this.#subscribed.delete(params.uri);
    else if (method === "tools/list")
      this.#listed = takesTasks(params ?? undefined) ? line.toString("utf8") : undefined;
  }

  /** The client asked this, and was answered in the daemon's place. */
  told(line: Buffer, method: string, result: string): void {
    this.#remember({ ...parse(line), method }, line);
    if (changeable.some((list) => method === `${list}/list`))
      this.#told.set(method, { line: line.toString("utf8"), result });
  }

  /** What the client has to hear since it was told something that is not so any more. */
  takeNews(): object[] {
    const news = this.#news;
    this.#news = [];
    return news;
  }

  /** What the daemon has said since the last call to whoever runs this proxy. */
  takeNotices(): string[] {
    const notices = this.#notices;
    this.#notices = [];
    return notices;
  }

  /** The daemon said this; false when it is not for the client. */
  received(line: Buffer): boolean {
    const message = parse(line);
    if (message === undefined) return true;
    const { id, method } = message;
    if (method === "notifications/subscriptions/acknowledged") return this.#acknowledge(message);
    if (method === proxyNotice) {
      this.#notices.push(String(message.params?.text));
      return false;
    }
    if (id === undefined) return true;
    if (method !== undefined) {
      this.#asked.add(id);
      return true;
    }
    this.#pending.delete(id);
    this.#check(String(id), message);
    return !this.#swallowed.delete(String(id));
  }

  /** Compares what the client was told in the daemon's place with what the daemon says. */
  #check(id: string, { result }: Message): void {
    const method = this.#checks.get(id);
    const told = method === undefined ? undefined : this.#told.get(method);
    if (method === undefined || told === undefined) return;
    this.#checks.delete(id);
    this.#told.delete(method);
    const [list = ""] = method.split("/");
    if (JSON.stringify(result) === told.result) return;
    this.#outdated.add(list);
    this.#news.push(...this.listsChanged([list]));
  }

  /** A subscription that stands again is no news to the client. */
  #acknowledge({ params }: Message): boolean {
    const request = this.#pending.get(params?._meta?.[metaKeys.subscription] as string);
    if (request === undefined) return true;
    const isNews = !request.isAcknowledged;
    request.isAcknowledged = true;
    if (isNews) this.#news.push(...[...this.#outdated].flatMap((list) => changesFor(request, list)));
    request.isRepeated = false;
    return isNews;
  }

  /**
   * The daemon is gone: what the client has to hear. What may be asked again waits for the next daemon, and so does
   * what this one never heard.
   */
  lost(heardBytes = Number.POSITIVE_INFINITY, isOrderly = false): object[] {
    const messages: object[] = [...this.#asked].map((requestId) => ({
      method: "notifications/cancelled",
      params: { requestId, reason: "The daemon that asked has ended." },
    }));
    this.#swallowed.clear();
    this.#checks.clear();
    this.#asked.clear();
    for (const request of this.#pending.values()) {
      const isUnheard = request.endByte > heardBytes;
      // No request has ended a daemon that left in good order.
      if (isUnheard || (repeatable.has(request.method) && (isOrderly || !request.isRepeated))) continue;
      this.#pending.delete(request.id);
      messages.push(toError(request.id, request.method === "tools/call" ? lostCall : lostRequest));
    }
    return messages;
  }

  /**
   * No daemon will come for now: errors for whoever waits. What a daemon heard was answered when it was lost.
   * Subscriptions stand for the next one.
   */
  giveUp(why: string): object[] {
    const owed = [...this.#pending.values()].filter(({ isAcknowledged }) => !isAcknowledged);
    for (const { id } of owed) this.#pending.delete(id);
    return owed.map(({ id, method }) => toError(id, unheard(why, method === "tools/call")));
  }

  /**
   * What tells a client that another daemon has other tools: by its session, or by each subscription that asked for it.
   */
  listsChanged(lists: readonly string[] = changeable): object[] {
    if (this.#initialized !== undefined) return lists.map((list) => ({ method: changedMethod(list) }));
    const standing = [...this.#pending.values()].filter(({ isAcknowledged }) => isAcknowledged);
    return standing.flatMap((request) => lists.flatMap((list) => changesFor(request, list)));
  }

  /**
   * What a new daemon has to hear before anything else: how the session began, then what still waits for an answer, each
   * request after a line with its age: its host's limit counts from when the client sent it.
   */
  replay(now = 0): readonly Buffer[] {
    const pending = [...this.#pending.values()];
    const isBegun = this.#initialize !== undefined && !pending.some(({ method }) => method === "initialize");
    const lines: Buffer[] = [];
    if (isBegun) {
      lines.push(this.#anew(this.#initialize as string));
      if (this.#initialized !== undefined) lines.push(this.#initialized);
      if (this.#logLevel !== undefined && !pending.some(({ method }) => method === "logging/setLevel"))
        lines.push(this.#anew(this.#logLevel));
      for (const line of this.#subscribed.values()) lines.push(this.#anew(line));
    }
    for (const [method, { line }] of this.#told) lines.push(this.#anew(line, method));
    const isListAsked = this.#told.has("tools/list") || pending.some(({ method }) => method === "tools/list");
    if (this.#listed !== undefined && !isListAsked) lines.push(this.#anew(this.#listed));
    let bytes = lines.reduce((sum, line) => sum + line.length + 1, 0);
    for (const request of pending) {
      const waited = toWaitedLine(now - request.arrivedAt);
      if (waited !== undefined) {
        bytes += waited.length + 1;
        lines.push(waited);
      }
      bytes += request.line.length + 1;
      request.endByte = bytes;
      request.isRepeated = true;
      lines.push(request.line);
    }
    return lines;
  }

  /** The same request under an id of our own, whose answer nobody waits for. */
  #anew(line: string, checked?: string): Buffer {
    const id = `meanwhile-replay-${++this.#replays}`;
    this.#swallowed.add(id);
    if (checked !== undefined) this.#checks.set(id, checked);
    return Buffer.from(JSON.stringify({ ...(JSON.parse(line) as object), id }));
  }
}

const changedMethod = (list: string) => `notifications/${list}/list_changed`;

/** What a subscription is told when a list has changed: nothing, unless it asked for that. */
function changesFor({ id, line }: Request, list: string): object[] {
  const { notifications = {} } = (parse(line)?.params ?? {}) as { notifications?: Readonly<Record<string, unknown>> };
  return notifications[`${list}ListChanged`] === true
    ? [{ method: changedMethod(list), params: { _meta: { [metaKeys.subscription]: id } } }]
    : [];
}

function takesTasks(params: Message["params"]): boolean {
  const capabilities = fieldsOf(params?._meta?.[metaKeys.clientCapabilities]);
  return fieldsOf(capabilities.extensions)[tasksExtension] !== undefined;
}

function toError(id: string | number, message: string): object {
  return { id, error: { code: RpcCode.Internal, message } };
}

/** Lines that are not messages are the daemon's to refuse. */
function parse(line: Buffer): Message | undefined {
  const value = parseLine(line);
  return typeof value === "object" && value !== null ? value : undefined;
}
