import { isObject, type Json, textOf } from "../../wire/json.ts";
import { printable } from "../text.ts";
import type { HttpAnswer, ProbeHttpOptions } from "./probe-http.ts";
import type { Pipe } from "./server-pipe.ts";

/** What came for a message that was sent as it is. */
export interface RawAnswer {
  readonly message?: Json | undefined;
  /** Why there is no message. */
  readonly problem?: string;
  readonly http?: HttpAnswer;
}

/** How messages travel; the session does the rest. */
export interface Carrier {
  readonly pipe: Pipe | undefined;
  /** Resolves when the answer is there, the time is over, or the way is closed. */
  send(
    message: Json,
    how: {
      readonly timeoutMs: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly onOther: (message: Json) => void;
    },
  ): Promise<RawAnswer>;
  /** Where messages of the server's own come from beside answers. */
  listen(onMessage: (message: Json) => void, headers: Readonly<Record<string, string>>): void;
  close(headers: Readonly<Record<string, string>>): Promise<void>;
}

/** Over pipes: answers are told apart by their ids. */
export function pipeCarrier(pipe: Pipe, signal: AbortSignal): Carrier {
  return {
    pipe,
    async send(message, { timeoutMs }) {
      if (pipe.isEnded) return { problem: "the server has left" };
      const since = pipe.lines.length;
      pipe.send(message);
      if (message.id === undefined || message.method === undefined) return {};
      const isAnswer = ({ json }: { readonly json: unknown }) =>
        isObject(json) && json.id === message.id && json.method === undefined;
      const line = await pipe.waitFor(isAnswer, { since, timeoutMs, signal });
      if (line !== undefined) return { message: line.json as Json };
      return { problem: pipe.flood ?? (pipe.isEnded ? "the server left without an answer" : noAnswer(timeoutMs)) };
    },
    listen: (onMessage) =>
      void pipe.onLine(({ json }) => {
        if (isObject(json) && textOf(json.method) !== undefined) onMessage(json);
      }),
    close: async () => void (await pipe.close()),
  };
}

/** Over HTTP: a POST for each message. */
export function httpCarrier(send: (options: ProbeHttpOptions) => Promise<HttpAnswer>): Carrier {
  const closing = new AbortController();
  return {
    pipe: undefined,
    async send(message, { timeoutMs, headers, onOther }) {
      const isRequest = message.id !== undefined && message.method !== undefined;
      let found: Json | undefined;
      const http = await send({
        headers,
        body: JSON.stringify(message),
        timeoutMs,
        signal: closing.signal,
        onMessage: (other) => {
          if (!isObject(other)) return false;
          if (textOf(other.method) !== undefined) onOther(other);
          else if (other.id === message.id || (other.id == null && other.error !== undefined)) found = other;
          return found !== undefined;
        },
      });
      if (!isRequest || found !== undefined) return { message: found, http };
      return { http, problem: describeMiss(http, timeoutMs) };
    },
    listen(onMessage, headers) {
      const { "content-type": _type, ...rest } = headers;
      void send({
        method: "GET",
        headers: { ...rest, accept: "text/event-stream" },
        timeoutMs: 600_000,
        signal: closing.signal,
        onMessage: (other) => {
          if (isObject(other) && textOf(other.method) !== undefined) onMessage(other);
          return false;
        },
      }).catch(() => undefined);
    },
    async close(headers) {
      if (headers["mcp-session-id"] !== undefined)
        await send({ method: "DELETE", headers, timeoutMs: 1_000 }).catch(() => undefined);
      closing.abort();
    },
  };
}

/** Times may be sums of what was measured. */
function noAnswer(timeoutMs: number): string {
  return `no answer within ${Math.round(timeoutMs)} ms`;
}

/** Where a redirect leads, without what may be secret in it. */
function describeWay(location = ""): string {
  return printable(URL.parse(location)?.origin ?? location.replace(/[?#].*$/s, ""), 200) || "nowhere";
}

function describeMiss(http: HttpAnswer, timeoutMs: number): string {
  if (http.ended === "timeout") return noAnswer(timeoutMs);
  if (http.ended === "too-large") return "the answer is larger than anybody reads";
  if (http.ended === "broken" || http.ended === "refused") return `the connection failed: ${http.error ?? "unknown"}`;
  if (http.status >= 300 && http.status < 400)
    return `a redirect to ${describeWay(http.headers.location)} (status ${http.status})`;
  const packing = http.headers["content-encoding"] ?? "identity";
  if (packing !== "identity") return `the answer is packed (${printable(packing, 40)}), which nobody asked for`;
  return `HTTP status ${http.status} without an answer to the request`;
}
