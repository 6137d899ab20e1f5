import { thisProgram } from "../program/program.ts";
import { withoutPassword } from "./without-password.ts";

/**
 * Names the isolated run that a process was started by; daemons are nobody's, whoever started them. It has one name in
 * all programs: a daemon that is started by another program's run must lose that mark, or it would end with the run.
 */
export const runVariable = "MEANWHILE_RUN";

/** Names the upstream that a process was started as, or by. Daemons are nobody's here, too. */
export const upstreamVariable = "MEANWHILE_UPSTREAM";

/** What a process of our own that outlives whoever starts it must not inherit. */
export const nobodys: Readonly<Record<string, undefined>> = { [runVariable]: undefined, [upstreamVariable]: undefined };

/** What of our own environment is for whoever we start too: settings, but nothing that is between our own processes. */
const forChildren = ["HOME", "STORE", "LOG", "DEBUG"];

/** The environment for a process that runs somebody else's code: all that is not ours, and of ours what it may know. */
export function childEnvironment(): Record<string, string | undefined> {
  const known = forChildren.map((name) => thisProgram.variable(name));
  const store = thisProgram.variable("STORE");
  const own = Object.entries(process.env).filter(
    ([name]) => !name.startsWith(thisProgram.variables) || known.includes(name),
  );
  // A database's password is between it and us.
  return Object.fromEntries(
    own.map(([name, value]) => [name, name === store && value !== undefined ? withoutPassword(value) : value]),
  );
}
