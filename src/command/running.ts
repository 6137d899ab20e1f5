import { AsyncLocalStorage } from "node:async_hooks";
import type { GivenUpHost } from "./outcome.ts";

/** Which commands run in this process, and have since somebody looked. */
export interface Run {
  readonly name: string;
  /** Ends this run with an error that escaped from it: an unhandled rejection, an exception in a timer. */
  fail(error: unknown): void;
}

/** A run that has not ended. */
export interface LiveRun extends Run {
  /** How much of the last `ms` this run may have blocked the event loop: 0 if its code is not in this process. */
  mayHaveBlocked(ms: number): number;
  /** Notes that it has blocked the event loop for so long until now. */
  noteBlock(ms: number): void;
}

/** A time in which the event loop was blocked by one command. */
export interface Block {
  /** The command. */
  readonly name: string;
  readonly ms: number;
  /** The host that had stopped waiting for the answer of this run when the block ended. */
  readonly lateFor: GivenUpHost | undefined;
}

/** A shorter block is not named. */
export const minBlockMs = 1_000;

export const runs = new AsyncLocalStorage<Run>();
export const running = new Set<LiveRun>();
export const endedNames = new Set<string>();
/** Runs that have ended since the last look and may have blocked the event loop in that time. */
export const endedSuspects = new Set<LiveRun>();

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
/** Commands whose files are being loaded, the first ones first. */
const loadingNames = new Set<string>();
type CommandsListener = (running: readonly string[], loading: readonly string[]) => void;
let onBegun: CommandsListener | undefined;
const tellBegun = () => onBegun?.([...begunNames], [...loadingNames]);

/** The commands that have run in this process since this was last asked. */
export function commandsSinceLastLook(): string[] {
  const runningNames = new Set([...running].map((run) => run.name));
  const names = new Set([...endedNames, ...runningNames]);
  endedNames.clear();
  begunNames.clear();
  for (const name of runningNames) begunNames.add(name);
  tellBegun();
  return [...names];
}

/**
 * Calls `listener` at every look, and before a command begins that did not run or its file is loaded: from then on it
 * may block the event loop. The listener must not throw.
 */
export function listenForCommands(listener: CommandsListener): () => void {
  onBegun = listener;
  return () => {
    onBegun = undefined;
  };
}

export function noteBegun(name: string): void {
  if (onBegun === undefined || begunNames.has(name)) return;
  begunNames.add(name);
  tellBegun();
}

/**
 * Notes that the file of a command is being loaded, until the returned function is called: its top level may block the
 * event loop.
 */
export function noteLoading(name: string): () => void {
  loadingNames.add(name);
  tellBegun();
  return () => {
    loadingNames.delete(name);
    if (loadingNames.size === 0) tellBegun();
  };
}

/** The run that the current code belongs to, if any. */
export function currentRun(): Run | undefined {
  return runs.getStore();
}
