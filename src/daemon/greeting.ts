import type { Socket } from "node:net";
import type { UpstreamStatus } from "../gateway/upstreams-control.ts";
import { parseLine } from "../wire/lines.ts";
import type { Proof } from "./proof.ts";

/**
 * The few lines that a daemon and our own programs exchange before MCP begins. A connection that begins with
 * anything else is an MCP client's, and is served as it is.
 */

export type Greeting =
  /**
   * A front: what follows is MCP. `host` counts in place of what the client calls itself; `folder` is where the session
   * works; `env` are its variables, where servers are started for it.
   */
  | {
      readonly meanwhile: "hello";
      readonly key: string;
      readonly host?: string;
      readonly folder?: string;
      readonly env?: Readonly<Record<string, string>>;
    }
  | { readonly meanwhile: "status" }
  /** Ends the connections of an upstream, so that the next call opens another. */
  | { readonly meanwhile: "restart"; readonly upstream: string }
  /** `keepsQuestions`: work that waits for a person goes on until it has its answer. Daemons before do not know it. */
  | { readonly meanwhile: "stop"; readonly isNow: boolean; readonly keepsQuestions?: boolean };

export type DaemonReply =
  /** `env`: the variables whose values make another daemon, by name; which values it has is in its key alone. */
  | { readonly meanwhile: "welcome"; readonly pid: number; readonly env: readonly string[] }
  /** Another daemon must be found or started; or, where this one has no file descriptors to spare, its turn awaited. */
  | { readonly meanwhile: "no"; readonly why: "leaving" | "another" | "full" }
  /**
   * The daemon ends this connection in good order: no need to come back before there is something to say. Of what it
   * was sent after the hello it has heard so many bytes.
   */
  | {
      readonly meanwhile: "bye";
      readonly heardBytes?: number;
      /** Nobody has told it to stop: the next one is needed at once, for what this one gives back. */
      readonly isReplaced?: boolean;
    }
  /** The last word to whoever told it to stop: so many of the project's tasks nobody works on. */
  | { readonly meanwhile: "left"; readonly waiting: number }
  /** What was asked for is done, or why it is not. */
  | { readonly meanwhile: "done"; readonly trouble?: string }
  /** The code reads other variables by now: there may be another daemon for this session. */
  | { readonly meanwhile: "moved" }
  | ({ readonly meanwhile: "status" } & DaemonStatus);

/** What a daemon tells about itself. */
export interface DaemonStatus {
  readonly pid: number;
  readonly version: string;
  readonly startedAt: number;
  readonly cwd: string;
  readonly folders: readonly string[];
  readonly configFile: string | undefined;
  readonly socket: string;
  readonly connections: number;
  /** Tasks it runs right now, those that others began too. */
  readonly running: number;
  /** Calls that somebody waits for. */
  readonly calls: number;
  /** Open questions of runs that must not be repeated: a stop ends them. Daemons of other versions do not say. */
  readonly questions?: readonly {
    readonly taskId: string;
    readonly tool: string;
    readonly message: string;
    /** The end of its time; absent where it has none, and in daemons of other versions. */
    readonly until?: number;
  }[];
  /** How long it lets work go on that must not be run twice. */
  readonly graceSeconds: number;
  /** The servers that stand behind it; absent where it has none. */
  readonly upstreams?: readonly UpstreamStatus[];
  /** The project as the names of its files have it. */
  readonly project?: string;
  /** It serves nothing but its upstreams. */
  readonly isWrap?: boolean;
}

export function toLine(message: (Greeting | DaemonReply) & Partial<Proof>): string {
  return `${JSON.stringify(message)}\n`;
}

/** Reads a line of ours; undefined when it is somebody else's. */
export function readGreeting(line: Buffer): (Greeting & Partial<Proof>) | undefined {
  return readOwn(line) as Greeting | undefined;
}

export function readReply(line: Buffer): (DaemonReply & Partial<Proof>) | undefined {
  return readOwn(line) as DaemonReply | undefined;
}

const maxLineBytes = 64 * 1024;
/** One of ours may bring an environment, which systems let grow to a few megabytes. */
const maxOwnBytes = 16 * 1024 * 1024;

/** Hands over the first line, and leaves the rest unread in the stream; undefined when it is too long to be ours. */
export function readFirstLine(socket: Socket, onLine: (line: Buffer | undefined, all: Buffer) => void): void {
  let read: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    read = read.length === 0 ? chunk : Buffer.concat([read, chunk]);
    const end = read.indexOf(0x0a);
    if (end === -1 && read.length <= (isOwn(read) ? maxOwnBytes : maxLineBytes)) return;
    socket.off("data", onData);
    socket.pause();
    const line = end === -1 ? undefined : read.subarray(0, end);
    const rest = end === -1 ? read : read.subarray(end + 1);
    if (rest.length > 0) socket.unshift(rest);
    onLine(line, read);
  };
  socket.on("data", onData);
}

const mark = Buffer.from('{"meanwhile":');

function isOwn(line: Buffer): boolean {
  return line.subarray(0, mark.length).equals(mark);
}

function readOwn(line: Buffer): object | undefined {
  if (!isOwn(line)) return undefined;
  return parseLine(line) as object | undefined;
}
