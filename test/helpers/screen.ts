import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { onTestFinished } from "vitest";
import { quoteWord } from "../../src/cli/remote/server-target.ts";
import { temporaryFolder } from "./home.ts";
import { codeCache, executable, quickStart, waitFor } from "./meanwhile.ts";

/** A real terminal, made by script(1), and the executable in it. */
export interface Screen {
  readonly child: ChildProcessWithoutNullStreams;
  /** Everything that was drawn so far. */
  readonly drawn: () => string;
  readonly sees: (pattern: RegExp) => Promise<string>;
  readonly press: (keys: string) => void;
  readonly exited: Promise<number | null>;
  /** What went to stdout, where that is a file. */
  readonly data: () => string;
}

export interface ScreenOptions {
  readonly columns?: number;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Data goes to the screen too, and not into a file. */
  readonly isDataShown?: boolean;
}

export const keys = { ctrlC: "\x03", down: "\x1b[B", enter: "\r", esc: "\x1b" } as const;

/** Types a line into a terminal of 24 rows. */
export function openScreen(words: readonly string[], options: ScreenOptions = {}): Screen {
  const folder = temporaryFolder();
  const output = path.join(folder, "stdout");
  const line = [process.execPath, quickStart, executable, ...words].map(quoteWord).join(" ");
  const to = options.isDataShown === true ? "" : ` > ${quoteWord(output)}`;
  // No shell stays between: some obey the Ctrl-C that is meant for the program, and exit with 130 whatever it does.
  const child = spawn(
    "/usr/bin/script",
    ["-qec", `stty cols ${options.columns ?? 80} rows 24; exec ${line}${to}`, "/dev/null"],
    {
      cwd: options.cwd ?? folder,
      env: {
        ...process.env,
        TERM: "xterm-256color",
        NO_COLOR: "1",
        NODE_COMPILE_CACHE: codeCache,
        MEANWHILE_HOME: path.join(folder, "home"),
        ...options.env,
      },
    },
  );
  let drawn = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (drawn += text));
  child.stdin.on("error", () => {});
  const exited = new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code)));
  onTestFinished(async () => {
    // The terminal's end ends what runs in it.
    child.kill("SIGTERM");
    await exited;
  });
  const sees = (pattern: RegExp) =>
    waitFor(
      () => pattern.exec(drawn)?.[0],
      () => `never saw ${pattern} in: ${JSON.stringify(drawn)}`,
    );
  return {
    child,
    drawn: () => drawn,
    sees,
    press: (typed) => child.stdin.write(typed),
    exited,
    data: () => (existsSync(output) ? readFileSync(output, "utf8") : ""),
  };
}
