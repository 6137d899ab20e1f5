/** An ID of ours: the first part of a random UUID tells tasks apart. */
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * A task ID as it is shown: eight characters on a terminal, all of it elsewhere. Every verb takes both. IDs that other
 * servers made in a form of their own stay whole.
 */
export function shownId(taskId: string, isTerminal: boolean): string {
  return isTerminal && uuid.test(taskId) ? taskId.slice(0, 8) : taskId;
}
