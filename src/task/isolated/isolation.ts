import { type ChildProcess, fork } from "node:child_process";
import { type Clock, toTimestamp } from "../../clock.ts";
import { AskedTime } from "../../command/asked-time.ts";
import { anonymous, type Caller, callerKey } from "../../command/caller.ts";
import type { CatalogEntry } from "../../command/catalog.ts";
import type { Answer, LogLine, Origin, ProgressReport, Question } from "../../command/context.ts";
import { Deadline } from "../../command/deadline.ts";
import type { Outcome } from "../../command/outcome.ts";
import type { RunOptions } from "../../command/run.ts";
import { messageOf, ShuttingDown, TimedOut } from "../../errors.ts";
import { createId } from "../../ids.ts";
import type { Logger } from "../../log.ts";
import { programWords } from "../../program/program.ts";
import { watchMemory } from "../../system/memory.ts";
import { system } from "../../system/system.ts";
import { childPlaces } from "../limits.ts";
import { FairQueue } from "../shares.ts";
import { notLoaded } from "../task-outcome.ts";
import { RemoteResult } from "../weigh.ts";

/** What the child is told. */
export type ToIsolated =
  | {
      readonly type: "run";
      readonly entry: Pick<CatalogEntry, "file" | "toolName" | "path">;
      readonly input: unknown;
      readonly options: ChildOptions;
    }
  | { readonly type: "stop"; readonly reason: "cancelled" | "shutdown"; readonly message: string }
  | { readonly type: "reply"; readonly id: number; readonly value?: unknown; readonly error?: string };

/** What the child says. */
export type FromIsolated =
  | { readonly type: "announce"; readonly text: string }
  | { readonly type: "progress"; readonly report: ProgressReport }
  | { readonly type: "log"; readonly line: LogLine }
  | { readonly type: "ask"; readonly id: number; readonly question: Question }
  | { readonly type: "keep"; readonly id: number; readonly name: string; readonly json: string }
  /** The command has returned a result of this size. The parent replies when the child may send the outcome. */
  | { readonly type: "room"; readonly id: number; readonly bytes: number }
  | { readonly type: "notLoaded"; readonly text: string }
  /** `stack`: that of an unexpected error and of its causes, for the log. */
  | { readonly type: "outcome"; readonly outcome: Outcome; readonly stack?: string };

interface ChildOptions {
  readonly home: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly caller: Caller | undefined;
  readonly origin: Origin | undefined;
  readonly isDebug: boolean;
  readonly attempt: number;
  readonly steps: readonly (readonly [string, string])[];
}

export interface IsolationOptions {
  readonly clock: Clock;
  /** The built file that a child begins with. */
  readonly childFile: string;
  readonly maxChildren: number;
  /** Kills a process and all it has started. */
  readonly killGroup: (pid: number) => void;
  /** The environment of a child. The run's name is in it, so that all it starts can be found. */
  readonly env?: (run: string) => Readonly<Record<string, string | undefined>>;
  /** Ends what a child has started and what has left its group; tells which processes those were. */
  readonly endStrays?: (pid: number, run: string) => readonly number[];
  readonly log?: Logger;
  readonly maxHeapMb?: number;
  readonly maxResidentMb?: number;
}

/** A child that was told to stop gets this long before it is killed. */
const obeyMs = 2_000;

/** Runs attempts in child processes: bounded in memory, killed when they do not obey, harmless when they crash. */
export function createIsolation(isolation: IsolationOptions): RunIsolated {
  const children = new FairQueue(childPlaces(isolation.maxChildren));
  return async (entry, input, options) => {
    const leave = await children.enter(callerKey(options.caller ?? anonymous));
    try {
      return await new IsolatedRun(isolation, entry, options).run(input);
    } finally {
      leave();
    }
  };
}

/** Runs a command in a child process, for a caller: children are shared between callers. */
export type RunIsolated = (entry: CatalogEntry, input: unknown, options: RunOptions) => Promise<Outcome>;

interface KillReason {
  readonly cause: "timeout" | "crash" | "cancelled";
  readonly message: string;
}

/** The error of a child, as far as it can be sent. */
function withStack(outcome: Outcome, stack: string | undefined): Outcome {
  if (outcome.ending !== "failed" || stack === undefined) return outcome;
  const error = new Error(outcome.message);
  error.stack = stack;
  return { ...outcome, error };
}

class IsolatedRun {
  readonly #isolation: IsolationOptions;
  readonly #entry: CatalogEntry;
  readonly #options: RunOptions;
  readonly #name = createId();
  readonly #strays = new Set<number>();
  readonly #child: ChildProcess;
  readonly #ended = Promise.withResolvers<Outcome>();
  readonly #startedAt: number;
  readonly #cleanups: (() => void)[] = [];
  #killedBecause: KillReason | undefined;
  #deadline: Deadline | undefined;
  readonly #askedTime: AskedTime;

  constructor(isolation: IsolationOptions, entry: CatalogEntry, options: RunOptions) {
    this.#isolation = isolation;
    this.#entry = entry;
    this.#options = options;
    this.#startedAt = isolation.clock.monotonic();
    this.#askedTime = new AskedTime(isolation.clock);
    const execArgv = [`--max-old-space-size=${isolation.maxHeapMb ?? 512}`];
    // Its own process group, so that what it starts is killed with it; its output is the operator's, not the
    // protocol's.
    const env = isolation.env?.(this.#name);
    this.#child = fork(isolation.childFile, programWords(), {
      execArgv,
      stdio: ["ignore", 2, 2, "ipc"],
      ...system.ownGroup,
      serialization: "json",
      ...(env && { env }),
    });
  }

  async run(input: unknown): Promise<Outcome> {
    const child = this.#child;
    child.on("message", (message) => void this.#hear(message as FromIsolated));
    child.on("error", (error) =>
      this.#ended.resolve(this.#failed("crash", `Its process could not be started: ${error.message}.`)),
    );
    child.on("exit", (code, signal) => this.#onExit(code, signal));
    this.#watchSignals();
    this.#watchDeadline();
    this.#watchMemory();
    const { home, config, caller, origin, isDebug = false, attempt = 1 } = this.#options;
    const { file, toolName, path } = this.#entry;
    const steps = this.#options.steps?.all() ?? [];
    this.#tell({
      type: "run",
      entry: { file, toolName, path },
      input,
      options: { home, config, caller, origin, isDebug, attempt, steps },
    });
    const outcome = await this.#ended.promise;
    for (const clean of this.#cleanups) clean();
    this.#kill();
    return this.#withStrays(outcome);
  }

  /** The command has to know that what it left running does not run on. */
  #withStrays(outcome: Outcome): Outcome {
    const count = this.#strays.size;
    if (count === 0) return outcome;
    const text = `${count === 1 ? "A process" : `${count} processes`} that it had left behind ${count === 1 ? "was" : "were"} ended.`;
    this.#isolation.log?.warn(`${this.#entry.toolName}: ${text}`, { pids: [...this.#strays] });
    // Its own last word stays the last.
    return {
      ...outcome,
      messages: outcome.messages.toSpliced(-1, 0, {
        type: "warning",
        text,
        timestamp: toTimestamp(this.#isolation.clock.now()),
      }),
    };
  }

  async #hear(message: FromIsolated): Promise<void> {
    const { door } = this.#options;
    switch (message.type) {
      case "announce":
        return door.announce?.(message.text);
      case "progress":
        return door.progress?.(message.report);
      case "log":
        return door.log?.(message.line);
      case "ask":
        return await this.#reply(message.id, () => this.#ask(message.question));
      case "keep":
        return await this.#reply(message.id, () => this.#options.steps?.keep(message.name, message.json));
      case "room":
        // The command has returned in time.
        this.#deadline?.cancel();
        return await this.#reply(message.id, () => this.#waitForRoom(message.bytes));
      case "notLoaded":
        return this.#ended.resolve(notLoaded(`${this.#entry.toolName} could not be loaded: ${message.text}`));
      case "outcome":
        return this.#ended.resolve(withStack(message.outcome, message.stack));
    }
  }

  /** Resolves when this process has room for a result that the child still holds. */
  async #waitForRoom(bytes: number): Promise<void> {
    const { door } = this.#options;
    const result = new RemoteResult(bytes);
    for (let room = door.room?.(result); room !== undefined; room = door.room?.(result)) await room;
  }

  #ask(question: Question): Promise<Answer> {
    const { door, signals = [] } = this.#options;
    if (door.ask === undefined) throw new Error(door.whyNoAnswer ?? "nobody can be asked here");
    const { ask } = door;
    const signal = AbortSignal.any([...signals]);
    const answer = () => this.#askedTime.wait(() => ask.call(door, question, signal));
    return this.#deadline === undefined ? answer() : this.#deadline.waitFor(answer);
  }

  async #reply(id: number, work: () => unknown): Promise<void> {
    try {
      this.#tell({ type: "reply", id, value: await work() });
    } catch (error) {
      this.#tell({ type: "reply", id, error: messageOf(error) });
    }
  }

  #watchSignals(): void {
    for (const signal of this.#options.signals ?? []) {
      const onAbort = () => this.#stop(signal.reason);
      if (signal.aborted) onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      this.#cleanups.push(() => signal.removeEventListener("abort", onAbort));
    }
  }

  #stop(reason: unknown): void {
    const isShutdown = reason instanceof ShuttingDown;
    this.#tell({ type: "stop", reason: isShutdown ? "shutdown" : "cancelled", message: messageOf(reason) });
    this.#killAfter(obeyMs, { cause: "cancelled", message: messageOf(reason) });
  }

  #watchDeadline(): void {
    const seconds = this.#entry.command.timeout;
    if (seconds === undefined) return;
    const because: KillReason = { cause: "timeout", message: new TimedOut(seconds).message };
    const deadline = new Deadline(this.#isolation.clock, seconds * 1000 + obeyMs, () => this.#killNow(because));
    this.#deadline = deadline;
    this.#cleanups.push(() => deadline.cancel());
  }

  #watchMemory(): void {
    const { clock, maxResidentMb: maxMb = 768 } = this.#isolation;
    const onTooMuch = () =>
      this.#killNow({ cause: "crash", message: `It used more than ${maxMb} MB of memory and was ended.` });
    if (this.#child.pid !== undefined) this.#cleanups.push(watchMemory(this.#child.pid, { maxMb, clock, onTooMuch }));
  }

  #killAfter(ms: number, because: KillReason): void {
    this.#cleanups.push(this.#isolation.clock.after(ms, () => this.#killNow(because)));
  }

  #killNow(because: KillReason): void {
    this.#killedBecause ??= because;
    this.#kill();
  }

  #onExit(code: number | null, signal: NodeJS.Signals | null): void {
    const because = this.#killedBecause;
    if (because?.cause === "cancelled")
      this.#ended.resolve({ ending: "cancelled", message: because.message, ...this.#facts() });
    else if (because !== undefined) this.#ended.resolve(this.#failed(because.cause, because.message));
    else this.#ended.resolve(this.#failed("crash", `Its process ended by itself (${signal ?? `exit code ${code}`}).`));
  }

  #failed(cause: "timeout" | "crash" | "cancelled", message: string): Outcome {
    return { ending: "failed", cause: cause === "cancelled" ? "crash" : cause, message, ...this.#facts() };
  }

  #facts() {
    const now = this.#isolation.clock.monotonic();
    return { messages: [], log: [], durationMs: Math.max(0, now - this.#startedAt - this.#askedTime.until(now)) };
  }

  #tell(message: ToIsolated): void {
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  #kill(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    // First while it lives, because then everybody's parent is still known; and again for what was started meanwhile.
    this.#endStrays(pid);
    this.#isolation.killGroup(pid);
    this.#endStrays(pid);
  }

  #endStrays(pid: number): void {
    for (const stray of this.#isolation.endStrays?.(pid, this.#name) ?? []) this.#strays.add(stray);
  }
}
