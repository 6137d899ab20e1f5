/**
 * What each revision of MCP has. A revision is a date, so that a later one compares greater; of an unknown one we say
 * nothing. Nobody else names a revision.
 */

/** Since this one every request says who asks, and there is no session. */
export const modernRevision = "2026-07-28";
/** The last one with a handshake, and the one that brought tasks into the core of the protocol. */
export const legacyRevision = "2025-11-25";

/** Those that begin with a handshake, newest first. */
export const legacyRevisions: readonly string[] = [legacyRevision, "2025-06-18", "2025-03-26", "2024-11-05"];
/** What a client over HTTP speaks that does not say. */
export const assumedRevision = "2025-03-26";
export const revisions: readonly string[] = [modernRevision, ...legacyRevisions];

/** The two ways that tasks travel, each named for the revision that brought it. */
export type TaskGeneration = typeof legacyRevision | typeof modernRevision;
export const taskGenerations: readonly TaskGeneration[] = [legacyRevision, modernRevision];

/** The extension that carries tasks since 2026-07-28. */
export const tasksExtension = "io.modelcontextprotocol/tasks";

export function isModern(revision: string): boolean {
  return revision >= modernRevision;
}

/**
 * Whether a tool says if it can be a task. Only the first of these has tasks that a client asks for, by `params.task`.
 */
export function knowsTaskSupport(revision: string): boolean {
  return revision >= legacyRevision;
}

/** Whether completions are a capability that a server declares. */
export function hasCompletionsCapability(revision: string): boolean {
  return revision >= "2025-03-26";
}

/** Whether requests over HTTP name their revision in a header. */
export function hasVersionHeader(revision: string): boolean {
  return revision >= "2025-06-18";
}

/** Whether a client takes an event without a message, which gives it an id to come back with. */
export function takesEmptyEvents(revision: string): boolean {
  return revision >= legacyRevision;
}

/** What a client asked for while there was a handshake, and asks for no longer. */
const endedMethods: ReadonlySet<string> = new Set([
  "initialize",
  "ping",
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe",
]);

/** Whether a server behind ours may be asked for it by a client of ours: tasks are always those that we keep. */
export function isPassedOn(method: string, isFromModern: boolean): boolean {
  return !method.startsWith("tasks/") && !(isFromModern && endedMethods.has(method));
}
