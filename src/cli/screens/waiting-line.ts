import { type Clock, systemClock } from "../../clock.ts";
import { clean, type Terminal } from "../terminal.ts";

const silenceMs = 2_000;

interface Waiting {
  readonly who: readonly string[];
  readonly terminal: Terminal;
  readonly clock?: Clock;
}

/** Tells a person at a terminal whom it waits for, when that takes a while; nothing of it stays there. */
export async function showWaiting<T>(
  waitedFor: Promise<T>,
  { who, terminal, clock = systemClock }: Waiting,
): Promise<T> {
  let isShown = false;
  const cancel = clock.after(silenceMs, () => {
    isShown = terminal.isLive;
    if (isShown) terminal.say(terminal.colors.dim(`Waiting for ${clean(who.join(", "))} to start …`));
  });
  try {
    return await waitedFor;
  } finally {
    cancel();
    if (isShown) terminal.erase();
  }
}
