import type { CatalogEntry, ListedEntry, LoadProblem, PendingCommand } from "./catalog.ts";

/** Where commands come from: folders, code, somebody else's server. A catalog is made of one or more. */
export interface CommandSource {
  /** In a sentence: the folder commands, the server acme. */
  readonly name: string;
  readonly entries: readonly CatalogEntry[];
  readonly problems: readonly LoadProblem[];
  /** What is wrong with all of it, in a sentence; undefined while it is well. */
  readonly trouble: string | undefined;
  /** The commands are tools of an upstream: a name that another command has is left out, and never stops a start. */
  readonly isUpstream?: boolean;
  get(toolName: string): CatalogEntry | undefined;
  /** Commands whose files are not loaded yet; absent where there are never any. */
  readonly pending?: readonly PendingCommand[];
  /** Loads the file of a pending command. Calls no listener and never rejects. */
  load?(toolName: string): Promise<void>;
  /** Loads every pending file. Calls no listener and never rejects. */
  loadAll?(): Promise<void>;
  /**
   * The pending commands as they were when they were last loaded, without those that could not be loaded; undefined when
   * one of them is not known.
   */
  readStored?(): readonly ListedEntry[] | undefined;
  onChange(listener: () => void): () => void;
  close(): void;
}
