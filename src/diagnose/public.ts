import { homedir } from "node:os";
import path from "node:path";
import { UsageError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import { requireOwn } from "../system/own-module.ts";
import { checkUrl, type DiagnosisTarget } from "./diagnosis-target.ts";
import type { Report } from "./report/report.ts";
import type { DiagnosisOptions } from "./run-diagnosis.ts";

/** What to diagnose, and how. Exactly one of `url` and `command`. */
export interface DiagnoseOptions
  extends Pick<
    DiagnosisOptions,
    "suites" | "isFull" | "tools" | "budgetMs" | "memoryMb" | "isDeterministic" | "privateFolder" | "signal" | "onStep"
  > {
  /** A server with an address. */
  readonly url?: string;
  /** Sent with every request, to this origin only, and shown nowhere. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Another caller's, to see whether callers are kept apart. */
  readonly otherHeaders?: Readonly<Record<string, string>>;
  /** With a token that was issued for another server, to see whether it is refused. */
  readonly foreignHeaders?: Readonly<Record<string, string>>;
  /**
   * Private addresses too, and this machine by any of its names. Default: only 127.0.0.1, ::1 and localhost, where the
   * URL says so.
   */
  readonly allowPrivate?: boolean;
  /** A server to start, several times: the program and its arguments, without a shell. */
  readonly command?: readonly string[];
  /** Where it is started. Default: where this process is. */
  readonly cwd?: string;
}

/**
 * Asks a server every question of the chosen suites and reports what was seen. Rejects with a UsageError when the
 * options make no sense.
 */
export async function diagnose(options: DiagnoseOptions): Promise<Report> {
  const target = toTarget(options);
  // Whoever only lists the commands of the pack does not pay for the checks.
  const { runDiagnosis } = await import("./run-diagnosis.ts");
  const { version } = requireOwn("meanwhile/package.json") as { version: string };
  return await runDiagnosis({
    privateFolder: path.join(homedir(), thisProgram.homeName),
    ...options,
    target,
    version,
  });
}

function toTarget({
  url,
  headers = {},
  otherHeaders,
  foreignHeaders,
  allowPrivate = false,
  command,
  cwd,
}: DiagnoseOptions): DiagnosisTarget {
  if (url !== undefined && command === undefined) {
    const { href, hostname } = checkUrl(url);
    const allowsLoopback = allowPrivate || /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
    const policy = { allowsPrivate: allowPrivate, allowsLoopback };
    return { kind: "http", url: href, headers, otherHeaders, foreignHeaders, policy };
  }
  const [program = ""] = command ?? [];
  if (url !== undefined || command === undefined || program === "")
    throw new UsageError(
      'Say which server to diagnose: either `url: "https://host/mcp"` or `command: ["node", "server.js"]`.',
    );
  return { kind: "stdio", argv: command, cwd };
}
