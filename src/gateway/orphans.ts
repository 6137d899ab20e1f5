import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createId } from "../ids.ts";
import { upstreamVariable } from "../system/child-environment.ts";
import { endMarked } from "../system/strays.ts";
import { createWorkerName, isKnownDead } from "../system/worker-name.ts";

/**
 * Upstreams that have outlived whoever started them, because that was killed before it could end them. Each is on
 * record in the home while it runs, with its keeper; and carries its name in its environment, as all that it starts.
 */

/** What one upstream's processes are known by. */
export interface UpstreamRecord {
  /** A variable for its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Ends what has left its group and still carries its name. */
  endStrays(): void;
  /** It is gone. */
  remove(): void;
}

/** This process, as another one can tell whether it still lives. */
let keeper: string | undefined;

/** Puts an upstream that is about to be started on record. Without a folder nobody looks for it afterwards. */
export function recordUpstream(folder: string | undefined): UpstreamRecord {
  const id = createId();
  const file = folder === undefined ? undefined : path.join(folder, id);
  if (file !== undefined) write(file);
  return {
    env: { [upstreamVariable]: id },
    endStrays: () => void endMarked(`${upstreamVariable}=${id}`),
    remove: () => void (file !== undefined && rmSync(file, { force: true })),
  };
}

/** A home that cannot be written keeps nobody from working. */
function write(file: string): void {
  keeper ??= createWorkerName();
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, keeper, { mode: 0o600 });
  } catch {
    // What is left behind by a crash is then not found.
  }
}

/** Ends the upstreams of this home whose keeper is dead; tells how many processes that were. */
export function endOrphans(folder: string): number {
  let ended = 0;
  for (const id of namesIn(folder)) {
    const file = path.join(folder, id);
    if (!isKnownDead(keeperOf(file))) continue;
    ended += endMarked(`${upstreamVariable}=${id}`);
    rmSync(file, { force: true });
  }
  return ended;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function keeperOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
