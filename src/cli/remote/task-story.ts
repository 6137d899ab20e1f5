import type { TaskState } from "../../client/client.ts";
import { type Clock, formatDuration } from "../../clock.ts";
import { clean, type Terminal } from "../terminal.ts";

interface StoryOptions {
  /** Takes one line, without its end. */
  readonly say: (line: string) => void;
  readonly colors: Terminal["colors"];
  readonly clock: Clock;
}

/** What was asked for. */
export interface AskedTask {
  readonly endpoint: string;
  readonly ttlMs: number | undefined;
  readonly pollIntervalMs: number | undefined;
}

/** News that come faster are told together. */
const newsGapMs = 1_000;

/** Tells how a call became a task, and what became of it: `--async`. */
export class TaskStory {
  readonly #say: StoryOptions["say"];
  readonly #colors: StoryOptions["colors"];
  readonly #clock: Clock;
  readonly #startedAt: number;
  #state: TaskState | undefined;
  #told = "";
  #toldAt = Number.NEGATIVE_INFINITY;
  #cancelNews: (() => void) | undefined;
  #polls = 0;
  #isOver = false;

  constructor({ say, colors, clock }: StoryOptions) {
    this.#say = say;
    this.#colors = colors;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  begin({ endpoint, ttlMs, pollIntervalMs }: AskedTask): void {
    this.#say(`${this.#colors.cyan("›")} Asking for a task`);
    this.#say(`  Endpoint: ${clean(endpoint)}`);
    this.#say(`  TTL: ${ttlMs === undefined ? "as the server has it" : inWords(ttlMs)}`);
    this.#say(`  Poll interval: ${pollIntervalMs === undefined ? "as the server has it" : inWords(pollIntervalMs)}`);
  }

  /** Takes every state of the task, and tells the news in it. */
  task(state: TaskState): void {
    if (this.#isOver) return;
    const before = this.#state;
    this.#state = state;
    if (before === undefined) this.#created(state);
    if (isEnded(state.status)) {
      this.#tell();
      this.#end(state.status);
    } else if (before !== undefined && before.status !== state.status) this.#tell();
    else this.#tellSoon();
  }

  /** Some servers say how far they are beside the task, and not in it. */
  progress(message: string | undefined): void {
    if (message === undefined || this.#isOver || this.#state?.status !== "working") return;
    this.#state = { ...this.#state, statusMessage: message };
    this.#tellSoon();
  }

  poll(): void {
    this.#polls++;
  }

  /** The result is there: whatever the states have not told is told now. */
  finish(): void {
    if (this.#state === undefined) {
      this.#say(`${this.#colors.yellow("!")} The server answered without making a task of it`);
      this.#say(`  Total time: ${this.#elapsed()}`);
    } else if (!this.#isOver) this.#end("completed");
  }

  /** Nothing is told after this. */
  stop(): void {
    this.#isOver = true;
    this.#cancelNews?.();
  }

  #tellSoon(): void {
    this.#cancelNews?.();
    const waitMs = this.#toldAt + newsGapMs - this.#clock.monotonic();
    if (waitMs <= 0) this.#tell();
    else this.#cancelNews = this.#clock.after(waitMs, () => this.#tell());
  }

  #tell(): void {
    this.#cancelNews?.();
    if (this.#state === undefined) return;
    const { status, statusMessage } = this.#state;
    const message = statusMessage === undefined ? "" : ` - ${clean(statusMessage)}`;
    // The numbers behind a message change all the time; it is news when the words do.
    const news = `${status}${message.replace(/ \([^()]*\)$/, "")}`;
    const isBareStart = this.#told === "" && news === "working";
    if (news === this.#told || isBareStart) return;
    this.#told = news;
    this.#toldAt = this.#clock.monotonic();
    this.#say(`  [${this.#elapsed()}] ${status}${message}`);
  }

  #created({ taskId, status, pollIntervalMs, ttlMs }: TaskState): void {
    this.#say(`${this.#colors.green("✓")} Task created: ${clean(taskId)}`);
    this.#say(`  Status: ${status}`);
    if (ttlMs !== undefined)
      this.#say(`  Server keeps the result ${ttlMs === null ? "for ever" : `for ${inWords(ttlMs)}`}`);
    if (pollIntervalMs !== undefined) this.#say(`  Server suggests polling every ${inWords(pollIntervalMs)}`);
    this.#say(`${this.#colors.cyan("›")} Waiting for its end`);
  }

  #end(status: Ending): void {
    this.stop();
    const sign = status === "completed" ? this.#colors.green("✓") : this.#colors.red("✗");
    this.#say(`${sign} Task ${status}`);
    this.#say(`  Total time: ${this.#elapsed()}`);
    this.#say(`  Polls: ${this.#polls === 0 ? "0, the server told by itself" : this.#polls}`);
    if (status !== "cancelled") this.#say(`${this.#colors.cyan("›")} Retrieving the result`);
  }

  #elapsed(): string {
    return `${((this.#clock.monotonic() - this.#startedAt) / 1000).toFixed(1)}s`;
  }
}

type Ending = "completed" | "failed" | "cancelled";

function isEnded(status: TaskState["status"]): status is Ending {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** 5 s, 5 min, 2 min 5 s. */
function inWords(ms: number): string {
  return formatDuration(ms)
    .replace(/\.0 s$/, " s")
    .replace(/ 0 (s|min)$/, "");
}
