import { setTimeout as wait } from "node:timers/promises";
import { pick } from "../../chaos/random.ts";
import { type Begun, type Json, type Message, type Result, WireClient } from "../../helpers/wire.ts";
import type { Ledger, Promised } from "./ledger.ts";
import type { Connection, Place } from "./places.ts";

export type Revision = "2025-06-18" | "2025-11-25" | "2026-07-28";
type Mood = "answers" | "declines" | "is silent";

/** No answer takes longer than this, whatever dies meanwhile: it is what "unanswered" means. */
const answerMs = 90_000;
const questionPattern = /^Which colour for (.+)\?$/;
const tasksExtension = { extensions: { "io.modelcontextprotocol/tasks": {} } };

/** Thrown when this client is no more. */
class Vanished extends Error {}

/** One MCP client that counts: what it asks is answered once, or it is gone. */
export class SoakClient {
  readonly wire: WireClient;
  readonly #connection: Connection;
  readonly #ledger: Ledger;
  readonly #name: string;
  readonly #owed = new Map<number, string>();
  readonly #gone = Promise.withResolvers<never>();
  readonly #moods = new Map<string, Mood>();

  constructor(
    connection: Connection,
    ledger: Ledger,
    about: { revision: Revision; capabilities: object; name: string },
  ) {
    this.#connection = connection;
    this.#ledger = ledger;
    this.#name = `${about.name} (${about.revision}, ${connection.link.door})`;
    this.wire = new WireClient(connection.link, {
      revision: about.revision,
      capabilities: about.capabilities,
      name: "soak",
    });
    this.#gone.promise.catch(() => undefined);
    const answered = new Set<number>();
    this.wire.onMessage((message) => {
      if (message.method === "elicitation/create") this.#elicited(message);
      if (message.method !== undefined || typeof message.id !== "number") return;
      if (answered.has(message.id)) ledger.wrong.push(`${this.#name}: two answers to request ${message.id}`);
      answered.add(message.id);
      this.#owed.delete(message.id);
    });
  }

  async begin(): Promise<void> {
    await this.#within(this.wire.begin(), "initialize");
  }

  /** Sends a request; the answer comes, or this client is gone. */
  start(method: string, params: Json): Pick<Begun, "id" | "answer" | "drop"> {
    const { id, answer, drop } = this.wire.start(method, params);
    this.#owed.set(id, `${method} ${JSON.stringify(params).slice(0, 200)}`);
    this.#ledger.count("requests");
    const kept = this.#within(answer, `${method} ${JSON.stringify(params).slice(0, 200)}`);
    // Who takes a request back does not wait for its answer.
    kept.catch(() => undefined);
    return { id, answer: kept, drop };
  }

  async request(method: string, params: Json = {}): Promise<Message> {
    return await this.start(method, params).answer;
  }

  async call(tool: string, input: object, more: Json = {}): Promise<Message> {
    return await this.request("tools/call", { name: tool, arguments: input, ...more });
  }

  /** Takes a request back: it may be answered, or not. */
  cancel(id: number): void {
    this.#owed.delete(id);
    this.wire.cancel(id);
  }

  /** Breaks the connection of one request. */
  drop({ id, drop }: Pick<Begun, "id" | "drop">): void {
    this.#owed.delete(id);
    drop();
  }

  /** What it does when it is asked about this key. */
  setMood(key: string, mood: Mood): void {
    this.#moods.set(key, mood);
  }

  vanish(): void {
    this.#owed.clear();
    this.#gone.reject(new Vanished());
    this.#connection.vanish();
  }

  /** Leaves in good order, once everything was answered. */
  async leave(): Promise<void> {
    const end = performance.now() + answerMs;
    while (this.#owed.size > 0 && performance.now() < end) await wait(20);
    for (const what of this.#owed.values()) this.#ledger.unanswered.push(`${this.#name}: ${what}`);
    await this.wire.close();
  }

  #elicited({ id, params }: Message): void {
    const key = questionPattern.exec(String(params?.message))?.[1] ?? "";
    const mood = this.#moods.get(key);
    if (mood === "answers")
      this.wire.respond(id as number, { action: "accept", content: { colour: "blue" } } as unknown as Result);
    if (mood === "declines") this.wire.respond(id as number, { action: "decline" } as unknown as Result);
  }

  async #within<T>(answer: Promise<T>, what: string): Promise<T> {
    const limit = new AbortController();
    const late = wait(answerMs, undefined, { signal: limit.signal, ref: false }).then(() => {
      throw new Error(`${this.#name}: no answer to ${what} within ${answerMs / 1000} s`);
    });
    late.catch(() => undefined);
    try {
      return await Promise.race([answer, this.#gone.promise, late]);
    } finally {
      limit.abort();
    }
  }
}

interface LifeOptions {
  readonly place: Place;
  readonly ledger: Ledger;
  readonly random: () => number;
  /** A name that no other life has. */
  readonly name: string;
  readonly isOver: () => boolean;
}

/** The life of one client: some calls of every kind, and an end in good order or without a word. */
export async function live(options: LifeOptions): Promise<void> {
  await new Life(options).run();
}

class Life {
  readonly #options: LifeOptions;
  readonly #client: SoakClient;
  readonly #revision: Revision;
  readonly #door: "stdio" | "http";
  readonly #takesTasks: boolean;
  #lastKey = 0;

  constructor(options: LifeOptions) {
    const { place, ledger, random, name } = options;
    this.#options = options;
    this.#door = place.hasHttp && random() < 0.4 ? "http" : "stdio";
    this.#revision = pick<Revision>(random, ["2025-06-18", "2025-11-25", "2026-07-28"]);
    this.#takesTasks = this.#revision === "2025-11-25" || (this.#revision === "2026-07-28" && random() < 0.7);
    const elicitation = this.#revision === "2025-06-18" ? {} : { elicitation: {} };
    const capabilities = { ...elicitation, ...(this.#takesTasks && this.#revision === "2026-07-28" && tasksExtension) };
    this.#client = new SoakClient(place.connect(this.#door), ledger, {
      revision: this.#revision,
      capabilities,
      name: `${place.name} ${name}`,
    });
    ledger.count(`clients ${this.#revision}`);
  }

  async run(): Promise<void> {
    const { random, ledger, isOver } = this.#options;
    try {
      await this.#client.begin();
      const actions = 3 + Math.floor(random() * 8);
      for (let n = 0; n < actions && !isOver(); n++) await this.#act();
      // Some are killed, or leave a session behind; over HTTP nobody says good-bye.
      if (random() < 0.25) return this.#vanish();
      await this.#client.leave();
    } catch (error) {
      if (error instanceof Vanished) return;
      ledger.wrong.push((error as Error).message);
      this.#client.vanish();
    }
  }

  async #act(): Promise<void> {
    const { random, ledger } = this.#options;
    await wait(random() * 200);
    const chance = random();
    if (chance < 0.1)
      ledger.count((await this.#client.request("tools/list")).result === undefined ? "errors" : "lists");
    else if (chance < 0.13) await this.#takeLarge();
    else if (chance < 0.25) await this.#takeBack();
    else if (chance < 0.29) await this.#vanishInCall();
    else if (chance < 0.45) await this.#ask();
    else await this.#work();
  }

  #vanish(): void {
    this.#options.ledger.count(this.#door === "stdio" ? "fronts killed" : "HTTP clients gone");
    this.#client.vanish();
  }

  #keyFor(kind: string): string {
    const { place, name } = this.#options;
    return `${kind} ${place.name} ${name}.${++this.#lastKey}`;
  }

  async #work(): Promise<void> {
    const { random } = this.#options;
    const kind = pick(random, ["safe", "unsafe"]);
    const key = this.#keyFor(kind);
    const ms = random() < 0.1 ? 1_800 + random() * 1_000 : 10 + random() * 300;
    const asTask = this.#takesTasks && random() < 0.5;
    const answer = await this.#client.call(`soak_${kind}`, { key, ms: Math.round(ms) }, asTask ? this.#asTask() : {});
    await this.#conclude(answer, { key, tool: kind === "safe" ? "soak_safe" : "soak_unsafe" });
  }

  #asTask(): Json {
    return this.#revision === "2025-11-25" ? { task: { ttl: 3_600_000 } } : { _meta: { "meanwhile/task": {} } };
  }

  async #takeLarge(): Promise<void> {
    const { random, ledger } = this.#options;
    const key = this.#keyFor("large");
    const mib = 1 + random() * 4;
    ledger.count("large results");
    await this.#conclude(await this.#client.call("soak_large", { key, mib }), { key, tool: "soak_large" });
  }

  async #takeBack(): Promise<void> {
    const { random, ledger } = this.#options;
    const begun = this.#client.start("tools/call", {
      name: "soak_safe",
      arguments: { key: this.#keyFor("safe"), ms: 1_000 },
    });
    await wait(random() * 300);
    if (this.#door === "http" && random() < 0.5) {
      ledger.count("connections broken");
      this.#client.drop(begun);
    } else {
      ledger.count("calls taken back");
      this.#client.cancel(begun.id);
    }
  }

  async #vanishInCall(): Promise<void> {
    const { random } = this.#options;
    void this.#client.call("soak_unsafe", { key: this.#keyFor("unsafe"), ms: 800 }).catch(() => undefined);
    await wait(random() * 400);
    this.#vanish();
    throw new Vanished();
  }

  async #ask(): Promise<void> {
    const { random, ledger } = this.#options;
    const key = this.#keyFor("asks");
    const mood = pick<Mood>(random, ["answers", "answers", "declines", "is silent"]);
    ledger.count(`questions: who is asked ${mood}`);
    this.#client.setMood(key, mood);
    const answer = await this.#client.call(
      "soak_asks",
      { key },
      this.#takesTasks && random() < 0.5 ? this.#asTask() : {},
    );
    await this.#conclude(answer, { key, tool: "soak_asks", mood });
  }

  /** What a call was answered with: a result, an error, a question, or something to follow. */
  async #conclude(answer: Message, about: { key: string; tool: Promised["tool"]; mood?: Mood }): Promise<void> {
    const { place, ledger } = this.#options;
    const { result, error } = answer;
    if (error !== undefined) {
      ledger.count("errors");
      // Where daemons are killed, calls are lost with them, and say so.
      if (place.kills === 0) ledger.wrong.push(`${about.key}: ${error.message}`);
      return;
    }
    if (result?.resultType === "input_required") return await this.#comeBack(result, about);
    const taskId =
      result?.task?.taskId ??
      (result?.resultType === "task" ? result.taskId : undefined) ??
      result?.structuredContent?.data?.job_id;
    if (typeof taskId === "string") return await this.#follow(taskId, about);
    this.#check(result, about);
  }

  #check(result: Result | undefined, { key, mood }: { key: string; mood?: Mood }): void {
    const { place, ledger } = this.#options;
    const got = result?.structuredContent?.success === true ? result.structuredContent.data.key : undefined;
    ledger.count(got === undefined ? "refusals" : "results");
    const isExpected =
      got === key || mood === "declines" || mood === "is silent" || (got === undefined && place.kills > 0);
    if (!isExpected) ledger.wrong.push(`${key} was answered with ${JSON.stringify(result).slice(0, 300)}`);
  }

  /** 2026-07-28 without tasks: the call is sent back with its question. */
  async #comeBack(result: Result, about: { key: string; tool: Promised["tool"]; mood?: Mood }): Promise<void> {
    if (about.mood === "is silent") return;
    const keys = Object.keys(result.inputRequests as object);
    const inputResponses = Object.fromEntries(keys.map((key) => [key, responseOf(about.mood)]));
    const again = { arguments: { key: about.key }, inputResponses, requestState: result.requestState };
    await this.#conclude(await this.#client.request("tools/call", { name: about.tool, ...again }), about);
  }

  async #follow(taskId: string, about: { key: string; tool: Promised["tool"]; mood?: Mood }): Promise<void> {
    const { place, ledger, random } = this.#options;
    const promised: Promised = {
      key: about.key,
      tool: about.tool,
      place,
      isCancelled: false,
      isDeclined: about.mood === "declines",
    };
    ledger.promised.set(taskId, promised);
    const chance = random();
    if (chance < 0.1 || about.mood === "is silent") return;
    if (chance < 0.2) {
      promised.isCancelled = true;
      ledger.count("tasks cancelled");
      if (this.#takesTasks) await this.#client.request("tasks/cancel", { taskId });
      else await this.#client.call("task_cancel", { job_id: taskId });
      return;
    }
    if (this.#revision === "2026-07-28" && this.#takesTasks) await this.#pollTask(taskId, about, promised);
    else if (this.#revision === "2025-11-25") await this.#awaitTask(taskId, about, promised);
    else await this.#pollHandle(taskId, about, promised);
  }

  async #awaitTask(taskId: string, about: { key: string; mood?: Mood }, promised: Promised): Promise<void> {
    const { result, error } = await this.#client.request("tasks/result", { taskId });
    if (error === undefined && !promised.isCancelled) this.#check(result, about);
  }

  async #pollTask(taskId: string, about: { key: string; mood?: Mood }, promised: Promised): Promise<void> {
    for (;;) {
      const { result } = await this.#client.request("tasks/get", { taskId });
      if (result === undefined || ["completed", "failed", "cancelled"].includes(result.status ?? "")) {
        if (result?.status === "completed" && !promised.isCancelled) this.#check(result.result as Result, about);
        return;
      }
      const asked = Object.keys((result.inputRequests as object | undefined) ?? {});
      if (asked.length > 0)
        await this.#client.request("tasks/update", {
          taskId,
          inputResponses: Object.fromEntries(asked.map((key) => [key, responseOf(about.mood)])),
        });
      else await wait(Number(result.pollIntervalMs ?? 500) / 2);
    }
  }

  async #pollHandle(taskId: string, about: { key: string; mood?: Mood }, promised: Promised): Promise<void> {
    for (;;) {
      const { result } = await this.#client.call("task_result", { job_id: taskId, wait_seconds: 1 });
      const data = result?.structuredContent?.data;
      if (data?.job_id === undefined) {
        if (result !== undefined && !promised.isCancelled) this.#check(result, about);
        return;
      }
      const [question] = (data.questions ?? []) as { key: string }[];
      if (question === undefined) continue;
      // A model cannot decline for its user: it can only stop the job.
      promised.isCancelled ||= about.mood === "declines";
      if (about.mood === "declines") await this.#client.call("task_cancel", { job_id: taskId });
      else await this.#client.call("task_answer", { job_id: taskId, answers: { [question.key]: { colour: "blue" } } });
    }
  }
}

function responseOf(mood: Mood | undefined): object {
  return mood === "declines" ? { action: "decline" } : { action: "accept", content: { colour: "blue" } };
}
