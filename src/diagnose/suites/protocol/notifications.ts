import { sleep } from "../../../clock.ts";
import { isObject, type Json } from "../../../wire/json.ts";
import type { Probe } from "../../asking/probe.ts";
import { cameBack, firstWords, headersOf, initialize, isAlive, verdictOf } from "../../asking/protocol/raw-requests.ts";
import type { Check, Fault, Severity } from "../../check.ts";
import type { RawAnswer } from "../../wire/carriers.ts";

/** What a server may not know, and a cancellation that comes too late. */
const notes: readonly { readonly subject: string; readonly note: Json }[] = [
  { subject: "unknown", note: { jsonrpc: "2.0", method: "notifications/meanwhile_unknown" } },
  {
    subject: "late cancel",
    note: {
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params: { requestId: "never-sent", reason: "Too late." },
    },
  },
];
const initialized = { subject: "initialized", note: { jsonrpc: "2.0", method: "notifications/initialized" } };

export const check: Check = {
  id: "protocol/notifications",
  question: "Are notifications taken without an answer, also such as the server does not know?",
  severity: "major",
  why: "Nobody waits for an answer to a notification: clients report it as a broken message. A refused notifications/initialized ends the connection in most clients.",
  remedy:
    "Send nothing for a message without an id, and ignore those that you do not know. Over HTTP answer with status 202 and an empty body.",
  source:
    "MCP 2025-11-25 and 2026-07-28, Overview: Notifications; 2025-11-25, Transports: Sending Messages to the Server",
  async run(probe) {
    return verdictOf(probe.target.kind === "stdio" ? await overPipe(probe) : await overHttp(probe));
  },
};

async function overPipe(probe: Probe): Promise<Fault[]> {
  const session = await probe.open(probe.facts.legacy === undefined ? {} : { revision: probe.facts.legacy.revision });
  const { pipe } = session;
  if (pipe === undefined) return [];
  const since = pipe.lines.length;
  for (const { note } of notes) pipe.send(note);
  const sent = notes.map(({ note }) => probe.sent(note));
  if (!(await isAlive(session)))
    return [
      { subject: "alive", title: "After unknown notifications the server does not answer any more", evidence: sent },
    ];
  await sleep(probe.clock, 150, probe.signal);
  const answers = pipe.lines
    .slice(since)
    .filter(({ json }) => isObject(json) && json.method === undefined && typeof json.id !== "number");
  if (answers.length === 0) return [];
  return [
    {
      subject: "answered",
      title: "Notifications are answered",
      evidence: [...sent, ...answers.slice(0, 2).map(({ text }) => probe.received(text))],
    },
  ];
}

async function overHttp(probe: Probe): Promise<Fault[]> {
  const { legacy } = probe.facts;
  const send = await firstWords(probe);
  const hello = legacy === undefined ? undefined : await send(initialize(legacy.revision));
  const sessionId = hello?.http?.headers["mcp-session-id"];
  const headers: Record<string, string> =
    legacy === undefined
      ? headersOf(await probe.open(), "")
      : { "mcp-protocol-version": legacy.revision, ...(sessionId !== undefined && { "mcp-session-id": sessionId }) };
  const faults: Fault[] = [];
  for (const { subject, note } of legacy === undefined ? notes : [initialized, ...notes]) {
    const answer = await send(note, {
      headers: legacy === undefined ? { ...headers, "mcp-method": String(note.method) } : headers,
    });
    const trouble = troubleOf(subject, answer);
    if (trouble !== undefined)
      faults.push({ subject, ...trouble, evidence: [probe.sent(note), cameBack(probe, answer)] });
    if (answer.http === undefined || answer.http.status === 0) break;
  }
  return faults;
}

function troubleOf(subject: string, { http }: RawAnswer): { title: string; severity?: Severity } | undefined {
  const what = subject === "initialized" ? "notifications/initialized" : "A notification";
  const status = http?.status ?? 0;
  if (http === undefined || status === 0 || http.ended === "timeout")
    return { title: `${what} gets no HTTP answer, or one without an end` };
  if (status >= 500) return { title: `${what} is answered with HTTP status ${status}` };
  // What it cannot take, a server may refuse; but nobody can begin without the first one.
  if (status >= 400) return subject === "initialized" ? { title: "notifications/initialized is refused" } : undefined;
  if (http.messages.length > 0) return { title: `${what} is answered with a message` };
  return status === 202
    ? undefined
    : { title: `${what} is accepted with another HTTP status than 202`, severity: "minor" };
}
