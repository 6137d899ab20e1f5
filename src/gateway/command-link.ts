import { nextTick } from "node:process";
import { systemClock, within } from "../clock.ts";
import { type Child, endChild, killChild, startChild } from "../wire/child.ts";
import { endWithUs } from "../wire/end-with-us.ts";
import { failureLine } from "../wire/failure-line.ts";
import { readLines, writeLine } from "../wire/line-link.ts";
import { ConnectionError, cut } from "../wire/peer-errors.ts";
import { recordUpstream, type UpstreamRecord } from "./orphans.ts";
import type { CommandAddress, UpstreamEvents, UpstreamLink } from "./upstream-link.ts";

/** One message a line over the pipes of a server that is started here, and that ends with all it has started. */

/** How long it may take to leave after its input is closed, and after a signal. */
const patienceMs = 2_000;
/** So much of what it has printed is kept to be said when it ends. */
const maxLastWords = 2_000;

/** Starts an upstream. `recordFolder`: where it is put on record, so that it is found when this process is killed. */
export async function startUpstream(
  address: CommandAddress,
  events: UpstreamEvents,
  recordFolder?: string,
): Promise<UpstreamLink> {
  const record = recordUpstream(recordFolder);
  const { command, args, cwd } = address;
  const child = await startChild({ command, args, cwd, env: { ...address.env, ...record.env } }).catch((error) => {
    record.remove();
    throw error;
  });
  return new CommandLink(child, { command, events, record });
}

interface Parts {
  readonly command: string;
  readonly events: UpstreamEvents;
  readonly record: UpstreamRecord;
}

class CommandLink implements UpstreamLink {
  readonly kind = "command";
  readonly #child: Child;
  readonly #parts: Parts;
  readonly #exited: Promise<void>;
  #why: ConnectionError | undefined;
  #closing: Promise<void> | undefined;
  #noise = 0;

  constructor(child: Child, parts: Parts) {
    this.#child = child;
    this.#parts = parts;
    const lastWords = this.#hear();
    const finish = readLines(child.stdout, {
      onMessage: (message) => parts.events.onMessage(message, undefined),
      onNoise: (line) => this.#passOver(line),
      onClose: (why) => {
        this.#why = why;
        parts.events.onClose(why);
        // What it says is not read any more, be it because of too long a line.
        void this.close();
      },
    });
    this.#exited = this.#untilGone((how) => finish(toError(parts.command, how, lastWords())));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  async send(message: Parameters<UpstreamLink["send"]>[0]): Promise<void> {
    if (this.#why !== undefined)
      throw new ConnectionError(this.#why.message, { isUnsent: true, isPassing: this.#why.isPassing });
    this.#gather();
    try {
      await writeLine(this.#child.stdin, message);
    } catch (error) {
      // One that takes nothing any more has mostly left, and its end says why.
      await within(systemClock, patienceMs, this.#exited);
      throw error;
    }
  }

  /** What is sent in one turn leaves in one write. */
  #gather(): void {
    const { stdin } = this.#child;
    if (stdin.writableCorked > 0) return;
    stdin.cork();
    nextTick(() => stdin.uncork());
  }

  async begin(): Promise<void> {}

  /** It is told by `notifications/cancelled`, and by nothing else. */
  drop(): void {}

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    const child = this.#child;
    const took = await endChild(child, {
      gone: this.#exited,
      politeMs: patienceMs,
      signalMs: patienceMs,
      isForGroup: true,
    });
    // It had no time to end those itself that have left its group.
    if (took === "kill") this.#parts.record.endStrays();
  }

  /** Resolves when it is gone, and nothing of its group is left. */
  #untilGone(tell: (how: string) => void): Promise<void> {
    const child = this.#child;
    const { record } = this.#parts;
    const release = endWithUs(child, () => {
      record.endStrays();
      record.remove();
    });
    // One that hands its pipes to another and leaves in good order goes on as that one.
    child.on("exit", (code) => void (code !== 0 && killChild(child)));
    return new Promise((resolve) =>
      child.on("close", (code, signal) => {
        killChild(child);
        release();
        record.remove();
        resolve();
        tell(code === null ? `was ended by ${signal}` : `ended with exit code ${code}`);
      }),
    );
  }

  /** Hands on what it prints as it comes, and keeps the end of it. */
  #hear(): () => string {
    let lastWords = "";
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      lastWords = (lastWords + text).slice(-maxLastWords);
      this.#parts.events.onStderr?.(text);
    });
    return () => lastWords;
  }

  #passOver(line: string): void {
    this.#noise++;
    if (this.#noise > 1 || line.trim() === "") return;
    this.#parts.events.onNotice?.(
      `It prints to its standard output what is no message of MCP, and that is passed over: «${cut(line, 100)}».`,
    );
  }
}

function toError(command: string, how: string, lastWords: string): ConnectionError {
  const words = cut(failureLine(lastWords));
  const sentence = `The server ${cut(command, 100)} ${how}${words === "" ? "." : `; it printed «${words}».`}`;
  return new ConnectionError(sentence, { isPassing: false, lastWords });
}
