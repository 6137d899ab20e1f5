import type { Json } from "../../../wire/json.ts";
import type { Probe } from "../../asking/probe.ts";
import { findLeaks, findTrace, type Leak } from "../../asking/security/leaks.ts";
import { type Check, type Fault, failed, passed } from "../../check.ts";
import type { ProbeSession } from "../../wire/probe-session.ts";

/**
 * Nothing that the server could run: a tool that cannot exist, and values of the wrong kind. A name of a megabyte does
 * not fit into a header.
 */
const badCalls: readonly {
  readonly what: string;
  readonly method: string;
  readonly params: Json;
  readonly headers?: Record<string, string>;
}[] = [
  { what: "a call of an unknown tool", method: "tools/call", params: { name: "no-such-tool-\u2603", arguments: {} } },
  { what: "a call with a number for a name", method: "tools/call", params: { name: 7, arguments: "text" } },
  {
    what: "a call with a name of 1 MB",
    method: "tools/call",
    params: { name: "x".repeat(1024 * 1024), arguments: {} },
    headers: { "mcp-name": "" },
  },
  { what: "a cursor that is an object", method: "tools/list", params: { cursor: { $ne: "'; --" } } },
];

export const check: Check = {
  id: "security/error-leak",
  question: "Do errors keep the server's inside to itself, and does no answer hold a stack trace?",
  severity: "minor",
  why: "Stack traces, file paths, queries and environment variables tell an attacker what to attack next, and they fill the model's context with what it cannot use.",
  remedy:
    "Catch what goes wrong at the edge: answer with one sentence about the request, and write the details to the log. Express shows no traces with NODE_ENV=production.",
  source: "MCP 2025-11-25 and 2026-07-28, Tools: Security Considerations; OWASP, Improper Error Handling",
  async run(probe) {
    const session = await probe.open();
    const texts = [
      ...(await askBadly(session)),
      ...(await sendNonsense(probe, session)),
      ...(await callBadly(probe, session)),
    ];
    const faults: Fault[] = [];
    const add = (title: string, what: string, { kind, severity, shown }: Leak) => {
      if (!faults.some(({ subject }) => subject === kind))
        faults.push({ subject: kind, title, severity, evidence: [probe.sent(what), probe.received(shown)] });
    };
    for (const { what, text } of texts)
      for (const leak of findLeaks(text, { isLocal: probe.target.kind === "stdio" }))
        add(`An error shows ${leak.kind}`, what, leak);
    for (const { what, text } of await callPlainly(probe, session)) {
      const leak = findTrace(text);
      if (leak !== undefined) add(`An answer shows ${leak.kind}`, what, leak);
    }
    return faults.length === 0 ? passed() : failed(faults);
  },
};

interface Told {
  readonly what: string;
  readonly text: string;
}

async function askBadly(session: ProbeSession): Promise<Told[]> {
  const told: Told[] = [];
  for (const { what, method, params, headers = {} } of badCalls) {
    const answer = await session.request(method, params, { timeoutMs: 2_000, headers });
    told.push({ what, text: answer.http?.text ?? JSON.stringify(answer.message ?? "") });
  }
  return told;
}

const nonsense = [
  { what: "text that is no JSON", text: '{"jsonrpc": "2.0", "id": 1, "method": nonsense' },
  { what: "a list within 10,000 lists", text: "[".repeat(10_000) + "]".repeat(10_000) },
] as const;

/** What is no message at all: over pipes a line, over HTTP a body. */
async function sendNonsense(probe: Probe, { pipe }: ProbeSession): Promise<Told[]> {
  if (pipe === undefined)
    return await Promise.all(
      nonsense.map(async ({ what, text: body }) => ({
        what,
        text: (await probe.http({ body, timeoutMs: 2_000 })).text,
      })),
    );
  const since = pipe.lines.length;
  for (const { text } of nonsense) pipe.write(`${text}\n`);
  await pipe.waitFor(({ json }) => json !== undefined, { since, timeoutMs: 400, signal: probe.signal });
  return pipe.lines.slice(since).map(({ text }) => ({ what: nonsense[0].what, text }));
}

/** One tool that may be called, with arguments of the wrong kinds. */
async function callBadly(probe: Probe, session: ProbeSession): Promise<Told[]> {
  const { tool } =
    probe.callables.find(({ tool: { inputSchema } }) => Object.keys(inputSchema.properties ?? {}).length > 0) ?? {};
  if (tool === undefined) return [];
  const wrong = Object.fromEntries(
    Object.keys(tool.inputSchema.properties as Json).map((name) => [name, { wrong: ["kind", null] }]),
  );
  const answer = await session.request("tools/call", { name: tool.name, arguments: wrong }, { timeoutMs: 3_000 });
  return [
    {
      what: `a call of ${probe.show(tool.name, 80)} with objects for all arguments`,
      text: answer.http?.text ?? JSON.stringify(answer.message ?? ""),
    },
  ];
}

const maxCalls = 5;
const plainMs = 1_500;

/** Tools that may be called, as they are meant to be: nobody should find a trace in any answer. */
async function callPlainly(probe: Probe, session: ProbeSession): Promise<Told[]> {
  const calls = probe.callables.slice(0, maxCalls).map(async ({ tool, arguments: args }) => {
    const answer = await session.request("tools/call", { name: tool.name, arguments: args }, { timeoutMs: plainMs });
    return {
      what: `a call of ${probe.show(tool.name, 80)} with ${probe.show(JSON.stringify(args), 120)}`,
      text: JSON.stringify(answer.message ?? ""),
    };
  });
  return await Promise.all(calls);
}
