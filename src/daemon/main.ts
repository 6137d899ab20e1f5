import { closeSync, writeSync } from "node:fs";
import { systemClock } from "../clock.ts";
import { guardBuiltins } from "../command/guard-builtins.ts";
import { watchLoop } from "../command/loop-watch.ts";
import { describeHarm, limitPrints, surviveCommands, takeStdout } from "../command/process-guard.ts";
import { currentRun } from "../command/running.ts";
import { Exit, type ExitCode, messageOf } from "../errors.ts";
import type { ProjectFlags } from "../project/project.ts";
import { refreshLauncher } from "../setup/launcher/launcher-file.ts";
import { onStop } from "../system/on-stop.ts";
import { Daemon, type DaemonHost, type GuardedDaemon, takeStart, toReport } from "./daemon.ts";
import { DoingFile } from "./doing.ts";
import { keepLogBounded } from "./log-file.ts";

/** A call that fails at once is answered within this time. */
const answerMs = 100;
/** The starter of the daemon reads one word from this file descriptor. */
const reportFd = 3;

/** Runs a daemon in a process of its own until it has ended. This file alone changes anything of the process. */
export async function run({
  flags: typed,
  words,
}: {
  flags: ProjectFlags;
  words: readonly string[];
}): Promise<ExitCode> {
  const report = words.includes("--report") ? tellStarter : () => {};
  try {
    const { flags, wantedKey } = takeStart(typed, process.env);
    const started = await Daemon.start({ flags, wantedKey, host: createHost() });
    if (started.kind === "ready") onStop(() => void started.daemon.stop());
    report(toReport(started));
    if (started.kind === "ready") {
      // The starter is told first: its client waits.
      refreshLauncher(started.daemon.settings.home, process.env, {
        file: process.execPath,
        version: process.versions.node,
        script: process.argv[1],
        isWindows: process.platform === "win32",
      });
      await started.daemon.ended;
    }
    return Exit.Ok;
  } catch (error) {
    report(`failed ${messageOf(error)}`);
    throw error;
  }
}

/** This process, as a daemon's. */
function createHost(): DaemonHost {
  let write = (text: string): void => void process.stderr.write(text);
  return {
    pid: process.pid,
    cwd: process.cwd(),
    env: process.env,
    writeLog: (text) => write(text),
    enterRoot: () => process.chdir("/"),
    guard(daemon) {
      write = guardProcess(daemon);
    },
    watch({ settings: { home, daemon }, log }) {
      const doing = new DoingFile(home, daemon.key, process.pid);
      const stopWatching = watchLoop(systemClock, log, (commands, loading) =>
        doing.write({ commands, loading }, systemClock.now()),
      );
      return () => {
        stopWatching();
        doing.close();
      };
    },
  };
}

/**
 * Limits what commands print, and keeps the process alive when they fail or change built-ins. Returns how the log is
 * written.
 */
function guardProcess({ settings: { home, logFiles }, log, fileOf, replace }: GuardedDaemon): (text: string) => void {
  takeStdout(process);
  const write = limitPrints(process, {
    clock: systemClock,
    who: () => currentRun()?.name,
    onLeftOut: (sentence) => log.warn(sentence),
  });
  keepLogBounded({ file: home.daemonLog, files: logFiles, fd: process.stderr.fd, clock: systemClock });
  surviveCommands(process, {
    currentRun,
    onBug: (error) => log.error("nobody caught this; please report it", { error }),
  });
  guardBuiltins((harm) => {
    // What else they have changed is not known: only a fresh process is as it should be.
    log.error(describeHarm(harm, "this daemon is replaced", fileOf));
    // The call by which the harm came is answered first.
    systemClock.after(answerMs, replace);
  });
  return write;
}

/** Writes one word to the starter and closes the pipe: a second word would have no reader. */
function tellStarter(word: string): void {
  try {
    writeSync(reportFd, word);
    closeSync(reportFd);
  } catch {
    // The starter has gone, or has its word already.
  }
}
