/**
 * How the text of a config file is read and changed; keys lead from the outermost object to a value. Everything else
 * keeps its bytes.
 */
export interface TextFormat {
  /** Throws a CommandError that says where the text is wrong. */
  read(text: string): Record<string, unknown>;
  /** Sets one value; makes what leads to it. */
  set(text: string, keys: readonly string[], value: unknown): string;
  /** Takes one value away, with its key. */
  remove(text: string, keys: readonly string[]): string;
  /** Within which part of the text one value is written. */
  spanOf(text: string, keys: readonly string[]): { readonly from: number; readonly to: number };
  /** The text of a file with nothing in it. */
  readonly nothing: string;
}
