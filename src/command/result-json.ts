import { CommandError } from "../errors.ts";

export const maxResultBytes = 10 * 1024 * 1024;

/**
 * Results that are longer are written out one in a turn of the event loop: many at once would stop everybody else, and
 * stand in memory together.
 */
const heavyChars = 1024 * 1024;
let isHeavy = false;

/** True once a result has been written out in this turn that was so long. */
export function isHeavyTurn(): boolean {
  return isHeavy;
}

function countHeavy(): void {
  if (isHeavy) return;
  isHeavy = true;
  setImmediate(() => {
    isHeavy = false;
  });
}

/** A result as JSON. Throws when it is none, or too large. */
export function toJson(data: unknown, name: string): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(data);
  } catch (cause) {
    const why = cause instanceof RangeError ? "it is nested too deeply" : (cause as Error).message.split("\n")[0];
    throw new CommandError(
      `${name} returned something that is not JSON: ${why}; return plain objects, lists, texts and numbers.`,
      { cause },
    );
  }
  if (json === undefined)
    throw new CommandError(
      `${name} returned a ${typeof data}, which is not JSON; return plain objects, lists, texts and numbers.`,
    );
  if (json.length > heavyChars) countHeavy();
  // No text has more bytes than three a letter, so most need not be counted.
  if (json.length > maxResultBytes / 3 && Buffer.byteLength(json) > maxResultBytes)
    throw new CommandError(
      `${name} returned more than ${maxResultBytes / 1024 / 1024} MiB; write it to a file and return the path.`,
    );
  return json;
}

/** Details go wherever the result goes; what is not JSON is described rather than failing the run. */
export function toPlain(details: unknown): unknown {
  try {
    const json = JSON.stringify(details);
    return json === undefined ? String(details) : JSON.parse(json);
  } catch {
    return details instanceof Error ? details.message : Object.prototype.toString.call(details);
  }
}
