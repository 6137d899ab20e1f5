import type { CatalogEntry, LoadProblem } from "./catalog.ts";

/** Where commands come from: folders, code, somebody else's server. A catalog is made of one or more. */
export interface CommandSource {
  /** In a sentence: the folder commands, the server acme. */
  readonly name: string;
  readonly entries: readonly CatalogEntry[];
  readonly problems: readonly LoadProblem[];
  /** What is wrong with all of it, in a sentence; undefined while it is well. */
  readonly trouble: string | undefined;
  get(toolName: string): CatalogEntry | undefined;
  onChange(listener: () => void): () => void;
  close(): void;
}
