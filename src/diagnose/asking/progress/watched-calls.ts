import { fieldsOf, type Json } from "../../../wire/json.ts";
import { skipped, type Verdict } from "../../check.ts";
import type { Heard, ProbeAnswer, ProbeSession } from "../../wire/probe-session.ts";
import type { Callable } from "../callables.ts";
import { likelySlowFirst } from "../likely-slow.ts";
import type { Probe } from "../probe.ts";

/** Calls with a progress token, and what is heard of them. */

export type Token = string | number;

export interface WatchedCall {
  readonly callable: Callable;
  readonly token: Token | undefined;
  readonly id: string | number;
  readonly startedAt: number;
  /** Undefined while it runs. */
  readonly ended: () => { readonly at: number; readonly answer: ProbeAnswer } | undefined;
  readonly end: Promise<unknown>;
}

const maxCallMs = 60_000;

/** Opens a conversation of a client without tasks, so that calls are answered themselves. */
function openPlain(probe: Probe, revision?: string): Promise<ProbeSession> {
  return probe.open({ capabilities: { elicitation: {} }, ...(revision !== undefined && { revision }) });
}

export function startCall(probe: Probe, session: ProbeSession, callable: Callable, token?: Token): WatchedCall {
  const params = { name: callable.tool.name, arguments: callable.arguments };
  const startedAt = probe.clock.monotonic();
  const { id, answer } = session.start("tools/call", params, {
    timeoutMs: maxCallMs,
    ...(token !== undefined && { meta: { progressToken: token } }),
  });
  let ended: ReturnType<WatchedCall["ended"]>;
  const end = answer.then((given) => {
    ended = { at: probe.clock.monotonic(), answer: given };
  });
  return { callable, token, id, startedAt, ended: () => ended, end };
}

/** Stops calls that still run, as a client does whose user has seen enough. */
export async function stopCalls(session: ProbeSession, ...calls: readonly WatchedCall[]): Promise<void> {
  await Promise.all(
    calls
      .filter((call) => call.ended() === undefined)
      .map(({ id }) => session.notify("notifications/cancelled", { requestId: id, reason: "Seen enough." })),
  );
}

/** Every progress that came, whatever its token. */
export function progressOf(session: Pick<ProbeSession, "heard">): readonly Heard[] {
  return session.heard.filter(({ message }) => isProgress(message));
}

/** What came with this very token. */
export function saidWith(session: Pick<ProbeSession, "heard">, token: Token | undefined): readonly Heard[] {
  return progressOf(session).filter(({ message }) => paramsOf(message).progressToken === token);
}

export function isProgress({ method }: Json): boolean {
  return method === "notifications/progress";
}

export function paramsOf(message: Json): Json {
  return fieldsOf(message.params);
}

/**
 * Waits until something holds, looking again whenever the server says something or a call ends; false when the time is
 * over.
 */
export async function waitUntil(
  probe: Probe,
  session: ProbeSession,
  { isThere, calls, untilMs }: { isThere: () => boolean; calls: readonly WatchedCall[]; untilMs: number },
) {
  const over = probe.clock.monotonic() + untilMs;
  while (!isThere()) {
    const leftMs = over - probe.clock.monotonic();
    if (leftMs <= 0) return false;
    const running = calls.filter((call) => call.ended() === undefined);
    if (running.length === 0) return isThere();
    const count = session.heard.length;
    await Promise.race([
      ...running.map(({ end }) => end),
      session.waitHeard(() => session.heard.length > count, leftMs),
    ]);
  }
  return true;
}

const candidates = 2;

export interface Speaker {
  readonly call: WatchedCall;
  /** Other calls that were tried, for stopping. */
  readonly others: readonly WatchedCall[];
}

/**
 * Calls the tools that are likeliest to be slow, at the same time, until one says something; a reason when none does.
 */
async function findSpeaker(probe: Probe, session: ProbeSession): Promise<Speaker | { readonly why: string }> {
  const chosen = likelySlowFirst(probe.callables).slice(0, candidates);
  if (chosen.length === 0) return { why: nothingToCall };
  const calls = chosen.map((callable, index) => startCall(probe, session, callable, `meanwhile-${index + 1}`));
  const findOne = () =>
    calls.find(({ token }) => saidWith(session, token).length > 0) ??
    (progressOf(session).length > 0 ? calls[0] : undefined);
  await waitUntil(probe, session, { isThere: () => findOne() !== undefined, calls, untilMs: speakMs(probe) });
  const call = findOne();
  if (call !== undefined) {
    const others = calls.filter((other) => other !== call);
    await stopCalls(session, ...others);
    return { call, others };
  }
  await stopCalls(session, ...calls);
  return { why: nothingSaid };
}

/** Has a call judged that has said something, in a conversation of its own; skipped where none says anything. */
export async function askSpeaker(
  probe: Probe,
  judge: (session: ProbeSession, speaker: Speaker) => Promise<Verdict>,
  revision?: string,
): Promise<Verdict> {
  const session = await openPlain(probe, revision);
  const found = await findSpeaker(probe, session);
  return "why" in found ? skipped(found.why) : await judge(session, found);
}

/** How long a call may be silent before it counts as one that says nothing. */
function speakMs({ isFull }: Probe): number {
  return isFull ? 10_000 : 2_500;
}

/**
 * What a call of the tools that are likeliest to be slow looks like from outside; seen once for all checks that only
 * look.
 */
interface Recording {
  readonly calls: readonly WatchedCall[];
  readonly heard: readonly Heard[];
  /** When nobody looked any more. */
  readonly until: number;
}

const lookMs = 3_500;
const fullLookMs = 25_000;
const moreMs = 3_000;
const floodOf = 1_000;

/** Undefined when there is nothing to call. */
export function recordCalls(probe: Probe): Promise<Recording | undefined> {
  return probe.recall("progress of slow calls", async () => {
    const chosen = likelySlowFirst(probe.callables).slice(0, candidates);
    if (chosen.length === 0) return undefined;
    const session = await openPlain(probe);
    const calls = chosen.map((callable, index) => startCall(probe, session, callable, `meanwhile-${index + 1}`));
    const isFlood = () => session.heard.length > floodOf;
    await waitUntil(probe, session, { isThere: isFlood, calls, untilMs: probe.isFull ? fullLookMs : lookMs });
    const isEnough = () => calls.some(({ token }) => saidWith(session, token).length >= 4);
    if (progressOf(session).length > 0) await waitUntil(probe, session, { isThere: isEnough, calls, untilMs: moreMs });
    const until = probe.clock.monotonic();
    const heard = [...session.heard];
    // As it was when it was looked at: what is stopped ends as well.
    const seen = calls.map((call) => {
      const ended = call.ended();
      return { ...call, ended: () => ended };
    });
    await stopCalls(session, ...calls);
    return { calls: seen, heard, until };
  });
}

/** Has the call judged that said most of those recorded; skipped where none said anything. */
export async function askRecorded(
  probe: Probe,
  judge: (recording: Recording, call: WatchedCall) => Verdict,
): Promise<Verdict> {
  const recording = await recordCalls(probe);
  if (recording === undefined) return skipped(nothingToCall);
  const call = speakerIn(recording);
  return call === undefined ? skipped(nothingSaid) : judge(recording, call);
}

/** The call that said most; undefined when none said anything. */
function speakerIn({ calls, heard }: Recording): WatchedCall | undefined {
  const [most] = calls
    .map((call) => ({ call, count: saidWith({ heard }, call.token).length }))
    .sort((one, other) => other.count - one.count);
  return most !== undefined && (most.count > 0 || progressOf({ heard }).length > 0) ? most.call : undefined;
}

export const nothingToCall =
  "No tool says that it only reads (readOnlyHint), with arguments that can be guessed; name a slow one with --tool and --args.";
export const nothingSaid =
  "No tool that was called sends progress, or none runs long enough to; name a slow one with --tool and --args.";
