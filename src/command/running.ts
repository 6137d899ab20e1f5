import { AsyncLocalStorage } from "node:async_hooks";

/** Which commands run in this process, and have since somebody looked. */
export interface Run {
  readonly name: string;
  /** Ends this run with an error that escaped from it: an unhandled rejection, an exception in a timer. */
  fail(error: unknown): void;
}

/** A run that has not ended. */
interface LiveRun extends Run {
  /** Notes that the event loop was blocked for so long until now. */
  noteBlock(ms: number): void;
}

/** A time in which nothing but commands ran in this process. */
export interface Block {
  /** A command that ran in it. */
  readonly name: string;
  readonly ms: number;
  /** The host that had stopped waiting for the answer of this run when the block ended. */
  readonly lateFor: { readonly host: string; readonly limitMs: number } | undefined;
}

/** A shorter block is not named. */
export const minBlockMs = 1_000;

export const runs = new AsyncLocalStorage<Run>();
export const running = new Set<LiveRun>();
export const endedNames = new Set<string>();

/** The blocks that runs have noted since the last look. */
let blocks: Block[] = [];

export function addBlock(block: Block): void {
  blocks.push(block);
}

export function takeBlocks(): readonly Block[] {
  const taken = blocks;
  blocks = [];
  return taken;
}

/** Those that run, or have begun since the last look. */
const begunNames = new Set<string>();
let onBegun: ((names: readonly string[]) => void) | undefined;

/** The commands that have run in this process since this was last asked. */
export function commandsSinceLastLook(): string[] {
  const runningNames = new Set([...running].map((run) => run.name));
  const names = new Set([...endedNames, ...runningNames]);
  endedNames.clear();
  begunNames.clear();
  for (const name of runningNames) begunNames.add(name);
  onBegun?.([...begunNames]);
  return [...names];
}

/**
 * Hears what runs at every look, and before a command begins that did not run: from then on it may keep everybody
 * waiting. Must not throw.
 */
export function listenForCommands(listener: (names: readonly string[]) => void): () => void {
  onBegun = listener;
  return () => {
    onBegun = undefined;
  };
}

export function noteBegun(name: string): void {
  if (onBegun === undefined || begunNames.has(name)) return;
  begunNames.add(name);
  onBegun([...begunNames]);
}

/** The run that the current code belongs to, if any. */
export function currentRun(): Run | undefined {
  return runs.getStore();
}
