/**
 * Which program this is: Meanwhile, or an author's own with Meanwhile inside. Whatever a person or a model reads, where
 * things are kept and which variables are listened to goes by the name said here, so that two programs on one machine
 * share nothing. What is said on the wire is no name: `_meta` keys, tool names and what is imported stay as they are.
 */
export interface ProgramFacts {
  /** What people type, and what its server is called. */
  readonly name: string;
  readonly version: string;
  /** What it is for, in a few words. */
  readonly summary?: string | undefined;
  /** What Node starts it by, whole and without links. */
  readonly executable: string;
  /** Its folders of commands, whole. */
  readonly folders: readonly string[];
  /** Variables whose values make another daemon, beside those that the code is seen to read. */
  readonly env?: readonly string[] | undefined;
  /** The npm package it comes in; undefined where it comes in none. */
  readonly packageName?: string | undefined;
}

/** What only the process has that the author's own file runs in. */
interface ProgramParts {
  /** What the author sets, in place of a project's config file. */
  readonly settings: object;
  /** Commands that lie in no file. */
  readonly commands: readonly unknown[];
}

/** Which program runs. */
export interface ProgramState {
  authors: ProgramFacts | undefined;
  parts: ProgramParts;
  /** Somebody has typed its name, or a host has: what a person may type next is known there. */
  isTyped: boolean;
}

export const newProgramState = (): ProgramState => ({
  authors: undefined,
  parts: { settings: {}, commands: [] },
  isTyped: false,
});

const ofProcess = newProgramState();
let state = (): ProgramState => ofProcess;

/** A test that runs several programs in one process says to which of them the current code belongs. */
export function findProgramBy(find: () => ProgramState | undefined): void {
  state = () => find() ?? ofProcess;
}

/** Makes this process an author's program; before anything asks which one it is, and for good. */
export function becomeProgram(facts: ProgramFacts, own?: ProgramParts): void {
  const now = state();
  if (now.authors !== undefined && now.authors.name !== facts.name)
    throw new Error(`This process is ${now.authors.name} already; start ${facts.name} in a process of its own.`);
  now.authors = facts;
  now.parts = own ?? now.parts;
}

/** Servers that an app has inside. */
let servers = 0;

/** This process was started by its name. */
export function beTyped(): void {
  state().isTyped = true;
}

/**
 * While an app has a server inside, nobody is told what to type, unless the process is a program that is typed. Call
 * what is returned when the server is closed.
 */
export function becomeApp(): () => void {
  servers += 1;
  let isOver = false;
  return () => {
    if (!isOver) servers -= 1;
    isOver = true;
  };
}

/** What a child that is a file of ours is told, so that it is the same program. */
export function programWords(): string[] {
  const { authors } = state();
  return authors === undefined ? [] : [JSON.stringify(authors)];
}

/** The other end of `programWords`. */
export function becomeAsTold([said]: readonly string[]): void {
  if (said !== undefined) becomeProgram(JSON.parse(said) as ProgramFacts);
}

export const thisProgram = {
  /** As it is typed. */
  get name(): string {
    return state().authors?.name ?? "meanwhile";
  },
  /** These words as a person types them behind its name; undefined where there is no such program. */
  typed(words: string): string | undefined {
    const { isTyped, authors } = state();
    const isApp = servers > 0 && !isTyped && authors === undefined;
    return isApp ? undefined : `${this.name} ${words}`;
  },
  /** As it stands in a sentence. */
  get title(): string {
    return state().authors?.name ?? "Meanwhile";
  },
  /** The facts of an author's program; undefined in Meanwhile itself. */
  get authors(): ProgramFacts | undefined {
    return state().authors;
  },
  /** What its author sets and hands over; not checked here. */
  get parts(): ProgramParts {
    return state().parts;
  },
  /** What its package is called where npm is asked for it. */
  get packageName(): string {
    const { authors } = state();
    return authors === undefined ? "meanwhile" : (authors.packageName ?? authors.name);
  },
  /** Its folder in the home of its user. */
  get homeName(): string {
    return `.${this.name}`;
  },
  /** What all its variables begin with. */
  get variables(): string {
    return `${this.name.replaceAll("-", "_").toUpperCase()}_`;
  },
  /** The variable that says something to it: `HOME` is `MEANWHILE_HOME`, or `ACME_HOME` in acme. */
  variable(name: string): string {
    return `${this.variables}${name}`;
  },
};
