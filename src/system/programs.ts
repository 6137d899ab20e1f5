import type { ExecFileSyncOptionsWithStringEncoding } from "node:child_process";

/** Programs that come with the system, asked for what Node does not tell. Tests answer in their place. */
export interface Programs {
  /** What it prints; nothing when it fails, is not there, or takes too long. */
  ask(program: string, words: readonly string[]): string;
  /** The same, while other work goes on. */
  askLater(program: string, words: readonly string[]): Promise<string>;
}

type BeganAt = (pid: number, start: string) => boolean | undefined;

/**
 * Asks no more about a process once it was who it should be, because workers are looked at every second. Where it has
 * died and its id was given out again before the next look, its lease tells.
 */
export function rememberStarts(ask: BeganAt): BeganAt {
  const known = new Set<string>();
  return (pid, start) => {
    const isKnown = known.has(`${pid} ${start}`) || ask(pid, start);
    if (isKnown === true) known.add(`${pid} ${start}`);
    return isKnown;
  };
}

/** Dates and numbers are printed in one way, whatever language the user has. */
const options = (): ExecFileSyncOptionsWithStringEncoding => ({
  encoding: "utf8",
  timeout: 10_000,
  killSignal: "SIGKILL",
  maxBuffer: 64 * 1024 * 1024,
  windowsHide: true,
  stdio: ["ignore", "pipe", "ignore"],
  env: { ...process.env, LC_ALL: "C", TZ: "UTC" },
});

// Loaded where it is needed: most who ask for a system need no program.
const childProcess = () => process.getBuiltinModule("node:child_process");

export const systemPrograms: Programs = {
  ask(program, words) {
    try {
      return childProcess().execFileSync(program, words, options());
    } catch {
      return "";
    }
  },
  askLater: (program, words) =>
    new Promise((resolve) => {
      childProcess().execFile(program, words, options(), (error, stdout) => resolve(error === null ? stdout : ""));
    }),
};
