import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { systemClock, within } from "../clock.ts";
import { system } from "../system/system.ts";
import { ConnectionError, cut } from "./peer-errors.ts";

/** A server that is started here and speaks over its pipes. */
export type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export interface ChildWords {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/**
 * Starts a server in a group of its own: a signal from the terminal is for us, and it is ended with all that it has
 * started.
 */
export async function startChild({ command, args, cwd, env }: ChildWords): Promise<Child> {
  const child = spawn(command, [...args], {
    stdio: ["pipe", "pipe", "pipe"],
    ...system.ownGroup,
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env }),
  });
  child.stdin.on("error", () => undefined); // A server that is gone says so by its exit.
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === "ENOENT"
          ? "there is no such command or working folder; name one that is installed, by its whole path if need be"
          : cause.message;
      reject(
        new ConnectionError(`The server ${cut(command)} cannot be started: ${why}.`, {
          isPassing: false,
          isUnsent: true,
          cause,
        }),
      );
    });
  });
  return child;
}

/** Kills it with all that it has started and that has not gone its own way; does nothing when they are gone. */
export function killChild(child: Child): void {
  if (child.pid !== undefined) system.killGroup(child.pid);
}

export interface Patience {
  /** When it counts as gone. */
  readonly gone: Promise<unknown>;
  /** How long it may take after its input is closed, and after a signal. */
  readonly politeMs: number;
  readonly signalMs: number;
  /** The signal is for all that it has started, too, as one from a terminal would be. */
  readonly isForGroup?: boolean;
}

/** Makes it leave: closes its input, then asks by a signal, then kills it. Says what it took. */
export async function endChild(
  child: Child,
  { gone, politeMs, signalMs, isForGroup = false }: Patience,
): Promise<"closing" | "signal" | "kill"> {
  const leaves = (ms: number) =>
    within(
      systemClock,
      ms,
      gone.then(() => true),
    );
  child.stdin.end();
  if (await leaves(politeMs)) return "closing";
  if (child.pid !== undefined) (isForGroup ? system.askGroupToEnd : system.askToEnd)(child.pid);
  if (await leaves(signalMs)) return "signal";
  killChild(child);
  // What it has started itself may hold its pipes; those are not ours to wait for.
  for (const stream of [child.stdout, child.stderr]) stream.destroy();
  await gone;
  return "kill";
}
