import { RuntimeError } from "../errors.ts";

/** A command that answers to a name. */
export interface Claimant {
  /** Its file, or whatever tells a reader where it comes from. */
  readonly place: string;
  /** The name is one of its `aliases`. */
  readonly isAlias?: boolean;
  /** Its first word, where it comes with Meanwhile. */
  readonly bundledDomain?: string | undefined;
}

/** Says that two commands answer to one name, and what to do about it. */
export function describeClash(name: string, first: Claimant, second: Claimant): string {
  if (first.isAlias === true && second.isAlias === true)
    return `Two commands have the alias ${name}: ${first.place} and ${second.place}; take it out of one.`;
  if (first.isAlias === true || second.isAlias === true) {
    const [alias, tool] = first.isAlias === true ? [first, second] : [second, first];
    return `The alias ${name} of ${alias.place} is the name of another tool, ${tool.place}; take the alias out, or rename the tool.`;
  }
  const domain = first.bundledDomain ?? second.bundledDomain;
  const cure =
    domain === undefined
      ? "rename one"
      : `rename yours, or leave the bundled one out: --no-bundled, or in the config \`bundled: false\` or a list of domains without ${domain}`;
  return `Two commands are called ${name}: ${first.place} and ${second.place}; ${cure}.`;
}

export function clash(text: string): RuntimeError {
  return new RuntimeError("COMMAND_CLASH", text);
}
