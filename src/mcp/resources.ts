import type { Caller } from "../command/caller.ts";
import type { CommandStats } from "../task/history.ts";
import type { OwnResources } from "./parts.ts";
import type { Result } from "./request.ts";

const statsUri = "meanwhile://stats";

/** Durations of other callers' runs are shown where callers are not told apart, and to the local user. */
function seesStats({ kind }: Caller): boolean {
  return kind === "local" || kind === "anonymous";
}

/**
 * Resources about the server itself: how long its commands take, over all callers.
 */
export function createResources(readStats: () => Promise<readonly CommandStats[]>): OwnResources {
  const stats = {
    uri: statsUri,
    name: "stats",
    title: "How long commands take",
    description: "Runs and p50, p95 and p99 wall time of every command, in milliseconds",
    mimeType: "application/json",
  };
  return {
    list: (caller) => (seesStats(caller) ? [stats] : []),
    read: (uri, caller) => (uri === statsUri && seesStats(caller) ? readAsJson(readStats) : undefined),
  };
}

async function readAsJson(readStats: () => Promise<readonly CommandStats[]>): Promise<Result> {
  const text = JSON.stringify({ commands: await readStats() });
  return { contents: [{ uri: statsUri, mimeType: "application/json", text }] } as Result;
}
