import type { FoundCommand } from "../command/discover.ts";
import { closest } from "../command/suggest.ts";
import { UsageError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import { clean } from "./terminal.ts";
import { listedVerbs } from "./verb-list.ts";

/**
 * The command whose words are typed first; the longest wins, so a subcommand beats an argument. A tool that is
 * registered may be typed with hyphens, where that can mean nothing else.
 */
export function longestMatch(found: readonly FoundCommand[], words: readonly string[]): FoundCommand | undefined {
  const [first = ""] = words;
  const fits = found.filter(({ path }) => path.every((part, at) => words[at] === part));
  if (fits.length > 0 || found.some(({ path }) => path[0] === first))
    return fits.sort((a, b) => b.path.length - a.path.length)[0];
  const spelled = found.filter(
    ({ toolName, isHooked }) => isHooked === true && toolName.replaceAll("_", "-") === first,
  );
  return spelled.length === 1 ? spelled[0] : undefined;
}

/** What is said of words that lead nowhere. */
export function unknownCommand(
  found: readonly FoundCommand[],
  words: readonly string[],
  upstreams: readonly string[] = [],
): UsageError {
  const typed = words.filter((word) => !word.startsWith("-"));
  const [first = ""] = typed;
  if (upstreams.includes(first) && !found.some(({ upstream }) => upstream === first))
    return new UsageError(
      `The upstream ${first} has not said yet what it lists; \`${thisProgram.name} tools\` asks it, and says why if it cannot.`,
    );
  const known = [...found.map(({ path }) => path.join(" ")), ...listedVerbs().map(({ name }) => name)];
  const guess = closest(typed.slice(0, 2).join(" "), known) ?? closest(typed[0] ?? "", known);
  const lister = found.some(({ isHooked }) => isHooked === true) ? "tools" : "--help";
  const hint =
    guess === undefined
      ? `${thisProgram.name} ${upstreams.includes(first) ? first : lister} lists what there is.`
      : `did you mean \`${thisProgram.name} ${clean(guess)}\`?`;
  return new UsageError(`Unknown command \`${typed.slice(0, 2).join(" ")}\`; ${hint}`);
}
