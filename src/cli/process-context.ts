import type { Readable, Writable } from "node:stream";
import type { GuardedProcess } from "../command/process-guard.ts";
import type { DaemonPlace } from "../daemon/front.ts";
import type { ProcessEnvironment } from "../paths.ts";
import type { StopSignal } from "../system/on-stop.ts";
import type { System } from "../system/system.ts";

/**
 * Everything the CLI takes from its process. The entry file passes the real process; a test passes streams and
 * variables of its own, and runs the CLI many times in one process.
 */
export interface ProcessContext {
  /** The words behind the program's name. */
  readonly argv: readonly string[];
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: ProcessEnvironment;
  /** The working folder. Reading it throws when the folder is gone. */
  readonly cwd: string;
  readonly platform: System["platform"];
  /** Ends the process at once; in a test, the run. */
  exit(code: number): void;
  /** Kills another process at once. */
  kill(pid: number): void;
  /** Sends SIGINT, SIGTERM and SIGHUP. */
  readonly signals: SignalSource;
  /** The Node executable that runs the CLI. */
  readonly nodeFile: string;
  readonly nodeVersion: string;
  /** The path of the script that Node was started with; it may be a link. */
  readonly script?: string | undefined;
  /** The process as commands see it. The guards change its streams and its `exit`; nothing else uses it. */
  readonly guarded: GuardedProcess;
  /** Starts this program with these words as a process that outlives this one and writes to a log file. */
  startInBackground(words: readonly string[], logFile: string): void;
  /** Starts a daemon with these flags. Default: in a process of its own. */
  readonly launch?: DaemonPlace["launch"];
}

type InputStream = Readable & { readonly isTTY?: boolean };

/** A stream for output; a terminal has a size. */
type OutputStream = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  /** The file descriptor, where it has one. */
  readonly fd?: number;
};

interface SignalSource {
  on(signal: StopSignal, listener: () => void): unknown;
  off(signal: StopSignal, listener: () => void): unknown;
}
