/** Names the isolated run that a process was started by; daemons are nobody's, whoever started them. */
export const runVariable = "MEANWHILE_RUN";

/** What of our own environment is for whoever we start too: settings, but nothing that is between our own processes. */
const forChildren: ReadonlySet<string> = new Set([
  "MEANWHILE_HOME",
  "MEANWHILE_STORE",
  "MEANWHILE_LOG",
  "MEANWHILE_DEBUG",
]);

/** The environment for a process that runs somebody else's code: all that is not ours, and of ours what it may know. */
export function childEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("MEANWHILE_") || forChildren.has(name)),
  );
}
