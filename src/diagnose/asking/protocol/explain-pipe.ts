import { isObject } from "../../../wire/json.ts";
import { legacyRevision } from "../../../wire/revisions.ts";
import type { Evidence, Fault } from "../../check.ts";
import { parseJson } from "../../wire/bounded-json.ts";
import type { Pipe } from "../../wire/server-pipe.ts";
import type { Probe } from "../probe.ts";
import { initialize } from "./raw-requests.ts";

/** Why nobody could speak to a server that was started here, and what to do about it. */
export async function explainPipe(probe: Probe, problem: string): Promise<Fault> {
  const pipe = await probe.startPipe();
  const hello = initialize(legacyRevision);
  pipe.send(hello);
  const line = await pipe.waitFor(({ json }) => isObject(json) && json.id === hello.id, {
    timeoutMs: probe.requestMs,
    signal: probe.signal,
  });
  const evidence = [probe.sent("initialize"), ...printed(probe, pipe)];
  if (line !== undefined) return { ...refusal(line.json), evidence };
  if (pipe.flood !== undefined)
    return {
      title: "The server floods its standard output",
      remedy: "Write nothing but answers there, each on one line.",
      evidence,
    };
  if (pipe.isEnded) {
    const { code, signal } = await pipe.ended;
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    return {
      title: `The server leaves before it answers (${how})`,
      remedy: "Read what it printed: often a missing argument, variable or file.",
      evidence,
    };
  }
  const told = manner(pipe);
  if (told !== undefined) return { ...told, evidence };
  return {
    title: "The server does not answer on its standard output",
    remedy:
      "Read lines from the standard input and write each answer as one line, at once: flush after each, and do not wait for the end of the input.",
    evidence: [...evidence, probe.measured(problem)],
  };
}

function printed(probe: Probe, pipe: Pipe): Evidence[] {
  const out = pipe.lines
    .slice(0, 20)
    .map(({ text }) => text)
    .join("\n");
  const evidence = out === "" ? [] : [probe.printed(out)];
  if (pipe.stderr.trim() === "") return evidence;
  return [...evidence, { kind: "printed", text: lastOf(probe.show(pipe.stderr, 20_000)) }];
}

function refusal(json: unknown): { title: string; remedy: string } {
  const isResult = isObject(json) && json.result !== undefined;
  return isResult
    ? {
        title: "The server answers at one time and not at another",
        remedy: "Look what its start depends on; it answered this time.",
      }
    : {
        title: "The server refuses every handshake",
        remedy: "Answer initialize (2025-11-25 and before) or server/discover (2026-07-28) with a result.",
      };
}

/** Ways of writing messages that look right to a person and that no client reads. */
function manner({ lines }: Pipe): { title: string; remedy: string } | undefined {
  const all = lines
    .slice(0, 2_000)
    .map(({ text }) => text.slice(0, 1_000))
    .join("\n");
  if (/^content-length:/im.test(all))
    return {
      title: "The server writes Content-Length headers before its messages",
      remedy: "Write each message as one line of JSON: MCP has no such headers.",
    };
  if (parseJson(all.slice(Math.max(0, all.indexOf("{")))) !== undefined)
    return {
      title: "The server spreads a message over several lines",
      remedy: "Write each message as one line, without indentation.",
    };
  if (lines.some(({ text }) => text.trim() !== ""))
    return {
      title: "The server prints text instead of messages on its standard output",
      remedy: "Write answers there and nothing else; log to the standard error.",
    };
  return undefined;
}

/** The end of a text that has been made fit to show. */
function lastOf(text: string): string {
  return text.length <= lastLetters ? text : `…${text.slice(-lastLetters)}`;
}

const lastLetters = 390;
