import path from "node:path";
import { env } from "node:process";
import { onTestFinished } from "vitest";
import { type ServedUpstream, serveHttp } from "../fixtures/gateway/http.mjs";
import { runStdio } from "../fixtures/gateway/stdio.mjs";
import { processesAreForbidden } from "./meanwhile.ts";
import { programAt } from "./programs.ts";

/** Servers to stand in front of, each with one way to misbehave: see test/fixtures/gateway. */

const folder = path.resolve(import.meta.dirname, "../fixtures/gateway");
const script = path.join(folder, "stdio.mjs");
if (processesAreForbidden()) programAt(script, (host) => runStdio(host.argv, host));

type CommonMode =
  | "plain"
  | "silent"
  | "answers-twice"
  | "reuses-ids"
  | "unknown-id"
  | "changes-tools"
  | "no-schema"
  | "odd-names"
  | "many-tools"
  | "contradicting"
  | "endless-task"
  | "short-ttl"
  | "late-task"
  | "backwards-progress"
  | "unasked"
  | "forging"
  | "gated"
  | "gated-deaf"
  | "gated-tasks"
  | "gated-required";
export type CommandMode =
  | CommonMode
  | "noise"
  | "bom"
  | "long-line"
  | "stderr-flood"
  | "exits-at-once"
  | "exits-in-call";
export type HttpMode =
  | CommonMode
  | "redirect"
  | "forgets-session"
  | "marks-late"
  | "error-500"
  | "busy"
  | "bad-certificate"
  | "wants-token"
  | "resumable"
  | "gated-resumable"
  | "sse"
  | "sse-elsewhere";

/** A server over stdio. `more` may name `ERA` (2025 or 2026) and `COUNT_FILE`. */
export function commandUpstream(mode: CommandMode = "plain", more: Readonly<Record<string, string>> = {}) {
  return {
    command: process.execPath,
    args: [script, mode],
    cwd: folder,
    env: { PATH: env.PATH ?? "", ...more },
  };
}

/** A server over HTTP in this process, gone after the test. */
export async function httpUpstream(
  mode: HttpMode = "plain",
  more: Readonly<Record<string, string>> = {},
): Promise<ServedUpstream> {
  const server = await serveHttp(mode, more);
  onTestFinished(() => server.close());
  return server;
}
