import { Exit } from "../errors.ts";

const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
export type StopSignal = (typeof stopSignals)[number];

/** Sends the signals, and ends at once on the second one. */
interface StoppedProcess {
  readonly signals: {
    on(signal: StopSignal, listener: () => void): unknown;
    off(signal: StopSignal, listener: () => void): unknown;
  };
  exit(code: number): void;
}

const thisProcess: StoppedProcess = { signals: process, exit: (code) => process.exit(code) };

/**
 * Calls `stop` on the first SIGINT, SIGTERM or SIGHUP, and exits on the second one. A second SIGHUP is ignored: it
 * comes with the first signal when a person logs out. Returns a function that stops listening.
 */
export function onStop(stop: () => void, { signals, exit }: StoppedProcess = thisProcess): () => void {
  let isStopping = false;
  const listeners = stopSignals.map((signal) => {
    const listener = () => {
      if (isStopping && signal !== "SIGHUP") exit(Exit.Cancelled);
      isStopping = true;
      stop();
    };
    signals.on(signal, listener);
    return [signal, listener] as const;
  });
  return () => {
    for (const [signal, listener] of listeners) signals.off(signal, listener);
  };
}
