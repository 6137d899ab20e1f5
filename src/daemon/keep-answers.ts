import { existsSync } from "node:fs";
import { PassThrough } from "node:stream";
import { type Clock, within } from "../clock.ts";
import type { Logger } from "../log.ts";
import type { Home } from "../paths.ts";
import { isObject, type Json } from "../wire/json.ts";
import { LineSplitter } from "../wire/lines.ts";
import { readMessage } from "../wire/message.ts";
import { toEnvelope } from "../wire/request-envelope.ts";
import { legacyRevisions, modernRevision, tasksExtension } from "../wire/revisions.ts";
import { type KeptAnswers, modernWithTasks, type Whose, writeAnswers } from "./carry/kept-answers.ts";

export interface KeeperOptions {
  readonly home: Home;
  readonly whose: Whose;
  /** Serves one client on these streams, as any front's is served, until it hangs up. */
  readonly serve: (input: PassThrough, output: PassThrough) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

const lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
/** Clients of 2026-07-28 that take tasks are listed other follow-up tools. */
const modernKinds = [
  [modernRevision, {}],
  [modernWithTasks, { extensions: { [tasksExtension]: {} } }],
] as const;
const clientInfo = { name: "meanwhile", version: "1" };
/** A daemon that is too busy to answer itself keeps nothing this time. */
const answerLimitMs = 20_000;

/**
 * Asks the daemon, as a client of each revision, what the next front may be told before its daemon is there, and leaves
 * it behind.
 */
export class AnswerKeeper {
  readonly #options: KeeperOptions;
  #isKeeping = false;
  #isOutdated = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** What changes while it is written down is written down next. */
  keep(): void {
    this.#isOutdated = true;
    if (!this.#isKeeping) void this.#keepAll();
  }

  async #keepAll(): Promise<void> {
    const { home, whose, log } = this.#options;
    this.#isKeeping = true;
    try {
      while (this.#isOutdated) {
        this.#isOutdated = false;
        const answers: Record<string, KeptAnswers[string]> = {};
        for (const revision of legacyRevisions) {
          const hello = { protocolVersion: revision, capabilities: {}, clientInfo };
          answers[revision] = await this.#ask([
            ["initialize", hello],
            ["ping", {}],
            ...lists.map((method) => [method, {}] as const),
          ]);
        }
        for (const [key, capabilities] of modernKinds) {
          const _meta = toEnvelope(clientInfo, capabilities);
          answers[key] = await this.#ask(["server/discover", ...lists].map((method) => [method, { _meta }] as const));
        }
        // A home that was moved away is not made anew.
        if (!this.#isOutdated && existsSync(home.folder)) writeAnswers(home, whose, answers);
      }
    } catch (error) {
      // The next front waits for its daemon then.
      log.debug("nothing is left behind for the next front", { error });
    } finally {
      this.#isKeeping = false;
    }
  }

  /** The results by method, one after the other as a client asks; what is refused has none. */
  async #ask(
    requests: readonly (readonly [method: string, params: Json])[],
  ): Promise<Readonly<Record<string, string>>> {
    const { serve, clock } = this.#options;
    const [input, output] = [new PassThrough(), new PassThrough()];
    const results: Record<string, string> = {};
    const splitter = new LineSplitter(Number.POSITIVE_INFINITY);
    const done = Promise.withResolvers<void>();
    let asked = 0;
    const askNext = () => {
      const [method, params] = requests[asked] ?? [];
      if (method === undefined) return done.resolve();
      asked += 1;
      input.write(`${JSON.stringify({ jsonrpc: "2.0", id: asked, method, params })}\n`);
    };
    output.on("data", (chunk: Buffer) => {
      for (const line of splitter.push(chunk)) {
        const { id, result } = readMessage(line.toString("utf8")) ?? {};
        if (id !== asked) continue;
        const method = requests[asked - 1]?.[0] as string;
        if (isObject(result) && result.nextCursor === undefined) results[method] = JSON.stringify(result);
        askNext();
      }
    });
    serve(input, output).then(() => done.reject(new Error("the daemon has hung up on itself")), done.reject);
    try {
      askNext();
      await within(clock, answerLimitMs, done.promise, () => {
        throw new Error("the daemon has not answered itself");
      });
      return results;
    } finally {
      input.end();
    }
  }
}
