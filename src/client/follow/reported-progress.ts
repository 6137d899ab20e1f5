import { fieldsOf, type Json, numberOf, textOf } from "../../wire/json.ts";
import type { Progress } from "../client.ts";

/** Progress from wherever a server puts it. */

/** `notifications/progress`. */
export function fromNotification(params: Json): Progress | undefined {
  const done = numberOf(params.progress);
  if (done === undefined) return undefined;
  const total = numberOf(params.total) ?? (params.job_id === undefined ? undefined : 1);
  const etaSeconds = numberOf(fieldsOf(fieldsOf(params._meta)["meanwhile/progress"]).etaSeconds);
  return toProgress(done, total, textOf(params.message), etaSeconds);
}

/** A status message such as `Page 3 of 12 (25%, about 34 s left)`; undefined when it holds no percentage. */
export function fromStatusMessage(text: string | undefined): Progress | undefined {
  if (text === undefined) return undefined;
  const [, words = "", percentage, left] =
    /^(.{0,1000}?)\s*\(?(?<![\d.])(\d{1,3}(?:\.\d{1,6})?) ?%(?:, about ([^()]{1,40}) left)?\)?\s*$/su.exec(text) ?? [];
  const done = Number(percentage);
  if (percentage === undefined || done > 100) return undefined;
  return toProgress(done, 100, words === "" ? undefined : words, left === undefined ? undefined : toSeconds(left));
}

/** What a plain handle says of its job. */
export function fromHandle(handle: Json): Progress | undefined {
  const { percentage, message, seconds_left } = fieldsOf(handle.progress);
  const done = numberOf(percentage);
  return done === undefined ? undefined : toProgress(done, 100, textOf(message), numberOf(seconds_left));
}

function toProgress(
  done: number,
  total: number | undefined,
  message: string | undefined,
  etaSeconds: number | undefined,
): Progress {
  return {
    done,
    ...(total !== undefined && { total }),
    ...(message !== undefined && { message }),
    ...(etaSeconds !== undefined && { etaMs: etaSeconds * 1000 }),
  };
}

const secondsIn: Readonly<Record<string, number>> = { ms: 0.001, s: 1, min: 60, h: 3600 };

/** `2 min 5 s` as a number of seconds; undefined when it is something else. */
function toSeconds(words: string): number | undefined {
  const parts = [...words.matchAll(/(\d+(?:\.\d+)?) (ms|s|min|h)\b/g)];
  return parts.length === 0
    ? undefined
    : parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (secondsIn[unit] ?? 0), 0);
}

/** Passes progress on that goes forward; the first source that gives numbers is the one that counts. */
export class ProgressFilter {
  readonly #onProgress: ((progress: Progress) => void) | undefined;
  #source: string | undefined;
  #last: Progress | undefined;

  constructor(onProgress: ((progress: Progress) => void) | undefined) {
    this.#onProgress = onProgress;
  }

  tell(source: "notification" | "status", progress: Progress | undefined): void {
    if (progress === undefined || this.#onProgress === undefined) return;
    if (this.#source === "notification" && source === "status") return;
    const last = source === this.#source ? this.#last : undefined;
    if (
      last !== undefined &&
      (progress.done < last.done || (progress.done === last.done && progress.message === last.message))
    )
      return;
    this.#source = source;
    this.#last = progress;
    this.#onProgress(progress);
  }
}
