import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../clock.ts";
import { watchMemory } from "../../system/memory.ts";
import { findOwnFile } from "../../system/own-module.ts";
import { system } from "../../system/system.ts";
import { betterOf, type CalledTool } from "../asking/tool-calls.ts";
import type { CheckMessage, CheckRequest } from "./answer-checks.ts";

/**
 * The child process that checks run in, one after the other. It is bounded in time and memory, and one that oversteps
 * is killed with every server it has started; the next check gets a fresh one.
 */
export class CheckProcess {
  readonly #memoryMb: number;
  #child: ChildProcess | undefined;
  #servers = new Set<number>();
  readonly #calls = new Map<string, CalledTool>();
  #settle: ((reply: CheckReply) => void) | undefined;

  constructor(memoryMb: number) {
    this.#memoryMb = memoryMb;
  }

  /** What became of the calls of tools so far, whichever process made them. */
  get calls(): ReadonlyMap<string, CalledTool> {
    return this.#calls;
  }

  /** Has one thing done; what does not end in time, or takes too much, is killed. */
  async ask(message: CheckRequest, limitMs: number, signal?: AbortSignal): Promise<CheckReply> {
    if (signal?.aborted === true) return { type: "killed", why: "it was cancelled" };
    const child = this.#child ?? this.#start();
    const reply = Promise.withResolvers<CheckReply>();
    this.#settle = reply.resolve;
    const stop = (why: string) => reply.resolve({ type: "killed", why });
    const stopTimer = systemClock.after(limitMs, () => stop(`it took longer than ${Math.round(limitMs / 100) / 10} s`));
    const stopWatch = watchMemory(child.pid ?? 0, {
      maxMb: this.#memoryMb,
      clock: systemClock,
      onTooMuch: () => stop(`it took more than ${this.#memoryMb} MB of memory`),
    });
    const onAbort = () => stop("it was cancelled");
    signal?.addEventListener("abort", onAbort, { once: true });
    child.send(message, (error) => {
      if (error !== null) stop(`its process could not be asked: ${error.message}`);
    });
    const got = await reply.promise;
    this.#settle = undefined;
    stopTimer();
    stopWatch();
    signal?.removeEventListener("abort", onAbort);
    if (got.type === "killed") await this.close();
    return got;
  }

  /** Ends the process and everything it has started. */
  async close(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const gone = new Promise<void>((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) resolve();
      else child.once("exit", () => resolve());
    });
    child.kill("SIGKILL");
    await gone;
    for (const pid of this.#servers) system.killGroup(pid);
    this.#servers.clear();
  }

  #start(): ChildProcess {
    const found = findOwnFile({ built: "diagnose-child.js", source: "diagnose/process/check-child.ts" });
    if (found === undefined) throw new Error("The file diagnose-child.js of the package meanwhile is missing.");
    const file = fileURLToPath(found);
    const child = fork(file, [], {
      execArgv: [`--max-old-space-size=${this.#memoryMb}`, "--max-semi-space-size=2"],
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      serialization: "json",
    });
    const servers = new Set<number>();
    this.#servers = servers;
    child.on("message", (message) => this.#hear(message as CheckMessage));
    child.on("error", () => undefined); // `exit` follows, or the time runs out.
    child.on("exit", (code, signal) => {
      if (this.#child === child) this.#settle?.({ type: "killed", why: `its process ended (${signal ?? code})` });
    });
    this.#child = child;
    return child;
  }

  #hear(message: CheckMessage): void {
    if (message.type === "started") this.#servers.add(message.pid);
    else if (message.type === "ended") this.#servers.delete(message.pid);
    else if (message.type === "called")
      this.#calls.set(message.call.tool, betterOf(this.#calls.get(message.call.tool), message.call));
    else this.#settle?.(message as CheckReply);
  }
}

export type CheckReply =
  | Exclude<CheckMessage, { readonly type: "started" | "ended" | "called" }>
  | { readonly type: "killed"; readonly why: string };
