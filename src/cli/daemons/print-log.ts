import { watch } from "node:fs";
import path from "node:path";
import { createColors } from "picocolors";
import { Exit, type ExitCode } from "../../errors.ts";
import type { Home } from "../../paths.ts";
import { printData } from "../run-in-terminal.ts";
import { LogTail } from "../screens/log-tail.ts";
import { LogView } from "../screens/log-view.ts";
import type { TypedVerb } from "../verb.ts";

interface LogCall extends TypedVerb {
  readonly home: Home;
}

/** `meanwhile daemon logs`: what the daemons of this home have written, and what they go on to write. */
export async function printLog({ home, terminal, options }: LogCall): Promise<ExitCode> {
  const file = home.daemonLog;
  const tail = new LogTail(file);
  if (!tail.exists && options.follow !== true) {
    terminal.say(`No daemon has written anything yet; its log will be ${file}.\n`);
    return Exit.Ok;
  }
  const view =
    options.json === true ? undefined : new LogView(terminal.isDataShown ? terminal.colors : createColors(false));
  await followLog(tail, {
    file,
    isFollowed: options.follow === true,
    terminal,
    take: (text) => (view === undefined ? printData(text, terminal) : terminal.print(view.take(text))),
  });
  if (options.follow !== true) terminal.print(view?.end() ?? "");
  return Exit.Ok;
}

interface FollowedLog extends Pick<TypedVerb, "terminal"> {
  readonly file: string;
  /** Until the person has had enough. */
  readonly isFollowed: boolean;
  readonly take: (text: string) => void;
}

/** Hands over what a log holds and, where it is followed, what is written next. */
export async function followLog(tail: LogTail, { file, isFollowed, terminal, take }: FollowedLog): Promise<void> {
  const print = () => tail.read(take);
  if (!isFollowed) return await print();
  const stopped = Promise.withResolvers<void>();
  const stopListening = terminal.onInterrupt(() => stopped.resolve());
  let printing = Promise.resolve();
  let isLooking = false;
  // Watched before the first look: what is written after that look is an event.
  const watcher = watch(path.dirname(file), (_, name) => {
    if (name?.startsWith(path.basename(file)) !== true || isLooking) return;
    // One more look is enough for all that is written until it begins.
    isLooking = true;
    printing = printing.then(() => {
      isLooking = false;
      return print();
    });
  });
  try {
    printing = print();
    await printing;
    await stopped.promise;
  } finally {
    watcher.close();
    stopListening();
  }
}
