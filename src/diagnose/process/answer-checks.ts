import { messageOf } from "../../errors.ts";
import type { Facts } from "../asking/facts.ts";
import { SessionPool } from "../asking/session-pool.ts";
import { type CalledTool, CallLog } from "../asking/tool-calls.ts";
import type { Verdict } from "../check.ts";
import { checks } from "../suites/index.ts";
import type { PipeEvents } from "../wire/server-pipe.ts";
import { type CheckConditions, type KnownConditions, runCheck, runSurvey, runTrial } from "./run-check.ts";

export type CheckRequest =
  | { readonly type: "survey"; readonly conditions: CheckConditions }
  | { readonly type: "check"; readonly id: string; readonly conditions: KnownConditions }
  | { readonly type: "trial"; readonly names: readonly string[]; readonly conditions: KnownConditions };

export type CheckMessage =
  | { readonly type: "facts"; readonly facts: Facts }
  | { readonly type: "verdict"; readonly verdict: Verdict }
  | { readonly type: "tried" }
  | { readonly type: "called"; readonly call: CalledTool }
  | { readonly type: "broken"; readonly message: string; readonly isLate: boolean }
  | { readonly type: "started" | "ended"; readonly pid: number };

/** Runs what the parent asks for, and tells it the outcome and which servers run. */
export class CheckAnswerer {
  readonly #tell: (message: CheckMessage) => void;
  readonly #pool = new SessionPool();
  readonly #memory = new Map<string, Promise<unknown>>();
  readonly #calls: CallLog;
  readonly #servers = new Set<number>();
  readonly #events: PipeEvents;

  constructor(tell: (message: CheckMessage) => void) {
    this.#tell = tell;
    this.#calls = new CallLog((call) => tell({ type: "called", call }));
    this.#events = {
      onStart: (pid) => {
        this.#servers.add(pid);
        tell({ type: "started", pid });
      },
      onEnd: (pid) => {
        this.#servers.delete(pid);
        tell({ type: "ended", pid });
      },
    };
  }

  async answer(request: CheckRequest): Promise<void> {
    try {
      this.#tell(await this.#run(request));
    } catch (error) {
      const isLate = (error as Error | undefined)?.name === "TimedOut";
      this.#tell({ type: "broken", message: messageOf(error), isLate });
    }
  }

  /** The process IDs of the servers that run. */
  get servers(): Iterable<number> {
    return this.#servers;
  }

  async #run(request: CheckRequest): Promise<CheckMessage> {
    const [events, pool, memory, calls] = [this.#events, this.#pool, this.#memory, this.#calls];
    if (request.type === "survey") return { type: "facts", facts: await runSurvey(request.conditions, events) };
    if (request.type === "trial") {
      await runTrial(request.names, request.conditions, { events, calls });
      return { type: "tried" };
    }
    const check = checks.find(({ id }) => id === request.id);
    if (check === undefined) throw new Error(`There is no check ${request.id}.`);
    return { type: "verdict", verdict: await runCheck(check, request.conditions, { events, pool, memory, calls }) };
  }
}
