import path from "node:path";
import { expect } from "vitest";
import { sleep } from "../../src/clock.ts";
import * as timed from "../fixtures/rules/commands/_timed.ts";
import many from "../fixtures/rules/commands/ask/many.ts";
import fail from "../fixtures/rules/commands/work/fail.ts";
import hold from "../fixtures/rules/commands/work/hold.ts";
import long from "../fixtures/rules/commands/work/long.ts";
import protocol from "../fixtures/rules/commands/work/protocol.ts";
import required from "../fixtures/rules/commands/work/required.ts";
import { type FakeClock, settled } from "./fake-clock.ts";
import { shareAmongTests } from "./home.ts";
import { isEnded, taskWhen } from "./place.ts";
import { openServer, type TestServer } from "./server.ts";
import { type Fields, type Message, takesAll, type WireClient } from "./wire.ts";

/** Servers and clients for the rules of tasks and of progress, T1–T22 and P1–P6. */

export const commands = path.resolve(import.meta.dirname, "../fixtures/rules/commands");

/** Some of these commands. Those that take time take it from this clock. */
export function commandsOn(clock: FakeClock) {
  const onClock: timed.Sleep = (ms, signal) => sleep(clock, ms, signal);
  return {
    ask_many: many,
    report_after: timed.createAfter(onClock),
    report_odd: timed.createOdd(onClock),
    report_steps: timed.createSteps(onClock),
    work_fail: fail,
    work_hold: hold,
    work_long: long,
    work_nap: timed.createNap(onClock),
    work_protocol: protocol,
    work_required: required,
  };
}

/** A test on a server with a fake clock, which advances while the test runs. */
export const timedTest =
  <T extends { readonly clock: FakeClock }>(open: () => Promise<T>, run: (opened: T) => Promise<void>) =>
  async (): Promise<void> => {
    const opened = await open();
    // Small steps: a call that waits for a file may not reach its host's limit meanwhile.
    await settled(opened.clock, run(opened), 2);
  };

/** A server, and an HTTP client of each revision, both with the token of the home. */
export interface Both<S extends TestServer = TestServer> {
  readonly server: S;
  readonly core: WireClient;
  readonly modern: WireClient;
}

export async function connectBoth<S extends TestServer>(server: S): Promise<Both<S>> {
  return {
    server,
    core: await server.client("2025-11-25", { over: "http", hasNoStream: true }),
    modern: await server.client("2026-07-28", { over: "http", capabilities: takesAll }),
  };
}

/** One server for the tests of a file that look at nothing but their own tasks, and a stdio client of each revision. */
export function shareServers() {
  const shared = shareAmongTests(() => openServer({ in: "http", commands }));
  const overStdio = (dialect: "2025-11-25" | "2026-07-28", capabilities: object = {}) =>
    shareAmongTests(async () => await (await shared()).client(dialect, { over: "stdio", capabilities }));
  return {
    both: async () => await connectBoth(await shared()),
    core: overStdio("2025-11-25"),
    modern: overStdio("2026-07-28", takesAll),
  };
}

/** An answer to a question. */
export const accept = (text: string) => ({ action: "accept", content: { text } });

/** The open questions of a task, once one of them is not in `known`. */
export async function nextQuestions(
  modern: WireClient,
  taskId: string,
  known: ReadonlyMap<string, unknown> = new Map(),
): Promise<Record<string, Fields>> {
  const isNew = (task: Fields) => Object.keys(task.inputRequests ?? {}).some((key) => !known.has(key)) || isEnded(task);
  return (await taskWhen(modern, taskId, isNew)).inputRequests ?? {};
}

/** The parameters of the progress notifications with this token. */
export const progressOf = (messages: readonly Message[], token: unknown): Fields[] =>
  messages
    .filter(({ method, params }) => method === "notifications/progress" && params?.progressToken === token)
    .map(({ params }) => params ?? {});

/** Fails unless each progress value is a finite number above the one before. */
export function expectRising(sent: readonly Fields[]): void {
  const values = sent.map(({ progress }) => progress as number);
  expect(values.filter((value, at) => !Number.isFinite(value) || value <= (values[at - 1] ?? -1))).toEqual([]);
}
