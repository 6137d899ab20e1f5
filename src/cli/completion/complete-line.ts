import type { DescribedCommand, Suggestion } from "../../command/command.ts";
import type { FoundCommand } from "../../command/discover.ts";
import { servedName } from "../../command/names.ts";
import type { ProjectFlags } from "../../project/project.ts";
import type { TaskStatus } from "../../task/task.ts";
import { globalFlags, helpFlag } from "../flags.ts";
import type { Verb, VerbGroup } from "../verb.ts";
import { type VerbName, verbNamed } from "../verb-list.ts";
import { toCommandWords } from "./command-words.ts";
import {
  type Completed,
  completeWord,
  type Given,
  type Grammar,
  type KnownValues,
  type LineWords,
  type OwnTools,
  readWords,
  toOffer,
} from "./grammar.ts";

/** What completion needs to know, looked up when it is needed. */
export interface CompletionFacts {
  readonly verbs: readonly { readonly name: VerbName; readonly summary: string }[];
  /** The files of the commands that can be run where these options are given. */
  findCommands(flags: ProjectFlags): Promise<readonly FoundCommand[]>;
  /** Those of the commands that are served there. */
  findServed(flags: ProjectFlags): Promise<readonly FoundCommand[]>;
  /** What stands before the name of every tool. */
  toolPrefix(flags: ProjectFlags): Promise<string>;
  /** A command as it was last loaded, unless its file is another by now. */
  describe(flags: ProjectFlags, found: FoundCommand): Promise<DescribedCommand | undefined>;
  readonly complete: KnownValues["complete"];
  findTasks(flags: ProjectFlags, statuses: readonly TaskStatus[] | undefined): Promise<readonly Suggestion[]>;
  /** The names of upstreams: of the config, and of those that are wrapped now. */
  findUpstreams(flags: ProjectFlags): Promise<readonly string[]>;
  /** The names of the project's API keys. */
  findKeys(flags: ProjectFlags): Promise<readonly string[]>;
  /** What a command does, where somebody can read it and it is not long in coming. */
  summaryOf(flags: ProjectFlags, found: FoundCommand): Promise<string | undefined>;
}

/** What can stand at the cursor behind `meanwhile`. */
export async function completeLine(line: LineWords, project: CompletionFacts): Promise<Completed> {
  const { current } = line;
  const words = line.words.filter((word, at) => word !== "--no-color" || line.words.slice(0, at).includes("--"));
  const { rest } = readWords(globals(), words);
  const leading = words.slice(0, words.length - rest.length);
  const { given, pending } = readWords(globals(), leading);
  const flags = toGlobalFlags(given);
  const known: KnownValues = {
    findTasks: (statuses) => project.findTasks(flags, statuses),
    findUpstreams: () => project.findUpstreams(flags),
    findKeys: () => project.findKeys(flags),
    complete: project.complete,
    tools: toOwnTools(flags, project),
  };
  const [first, ...others] = rest;
  if (first === undefined && (pending !== undefined || current.startsWith("-")))
    return await completeWord(globals(), { words: leading, current }, known);
  const names = project.verbs.map(({ name, summary }) => ({ value: name, description: summary }));
  if (first === undefined)
    return inPlace([...names, helpVerb, ...(await namesBelow({ words: [], current }, flags, project))]);
  if (first === "help")
    return inPlace([
      ...(others.length === 0 ? names : []),
      ...(await namesBelow({ words: others, current }, flags, project)),
    ]);
  const named = verbNamed(first);
  if (named !== undefined) {
    const { verb } = await named.load();
    return await completeVerb(verb, { words: others, current }, known);
  }
  return await completeCommand({ words: rest, current }, flags, { project, known });
}

const globals = (): Grammar => ({ flags: [...globalFlags(), helpFlag], operands: [] });
const helpVerb: Suggestion = { value: "help", description: "explain a command" };
const inPlace = (suggestions: readonly Suggestion[]): Completed => ({ before: "", offer: toOffer(suggestions) });

function toGlobalFlags(given: Given): ProjectFlags {
  const commands = given.get("--commands");
  const bundled = given.has("--no-bundled") ? false : given.has("--bundled") ? true : undefined;
  return { ...(commands !== undefined && { commands }), ...(bundled !== undefined && { bundled }) };
}

function toOwnTools(flags: ProjectFlags, project: CompletionFacts): OwnTools {
  const named = async () => {
    const prefix = await project.toolPrefix(flags);
    const found = (await project.findServed(flags)).filter(({ problem }) => problem === undefined);
    return found.map((item) => ({
      name: item.servedAs ?? servedName({ ...item, isListedByServer: item.isHooked === true }, prefix),
      item,
    }));
  };
  return {
    list: async () =>
      await Promise.all(
        (await named()).map(async ({ name, item }) => ({
          value: name,
          description: await project.summaryOf(flags, item),
        })),
      ),
    async describe(toolName) {
      const known = (await named()).find(({ name }) => name === toolName);
      return known && (await project.describe(flags, known.item));
    },
  };
}

async function completeVerb(verb: Verb | VerbGroup, line: LineWords, known: KnownValues): Promise<Completed> {
  if (!("verbs" in verb))
    return await completeWord({ flags: [...verb.flags, helpFlag], operands: verb.operands ?? [] }, line, known);
  const [first, ...words] = line.words;
  if (first === undefined && !line.current.startsWith("-"))
    return inPlace(Object.entries(verb.verbs).map(([value, { description }]) => ({ value, description })));
  const inner = first !== undefined && Object.hasOwn(verb.verbs, first) ? verb.verbs[first] : undefined;
  if (inner === undefined) return await completeWord({ flags: [helpFlag], operands: [] }, line, known);
  return await completeVerb(inner, { ...line, words }, known);
}

/** A subcommand's name, or an argument of the command that is there already. */
async function completeCommand(
  line: LineWords,
  flags: ProjectFlags,
  { project, known }: { readonly project: CompletionFacts; readonly known: KnownValues },
): Promise<Completed> {
  const { words, current } = line;
  const names = await namesBelow(line, flags, project);
  const fits = (await project.findCommands(flags)).filter(({ path }) => path.every((part, at) => words[at] === part));
  const match = fits.sort((a, b) => b.path.length - a.path.length)[0];
  const command = match && (await project.describe(flags, match));
  if (match === undefined || command === undefined) return inPlace(names);
  const behind = { words: words.slice(match.path.length), current };
  const completed = await completeWord(toCommandWords(command), behind, known);
  const { offer } = completed;
  if (offer.kind !== "values") return names.some(({ value }) => value.startsWith(current)) ? inPlace(names) : completed;
  // Flags stand in for arguments where a command has none left, but not for subcommands.
  const own =
    names.length > 0 && current === ""
      ? offer.suggestions.filter(({ value }) => !value.startsWith("--"))
      : offer.suggestions;
  return { ...completed, offer: toOffer([...names, ...own]) };
}

/** The words that lead on to a command; only those that begin with what was typed, where there are such. */
async function namesBelow(
  { words, current }: LineWords,
  flags: ProjectFlags,
  project: CompletionFacts,
): Promise<Suggestion[]> {
  const below = (await project.findCommands(flags)).filter(
    ({ path, problem }) => problem === undefined && isBelow(path, words),
  );
  const byName = [...Map.groupBy(below, ({ path }) => path[words.length] ?? "")];
  const begun = byName.filter(([name]) => name.startsWith(current));
  const wanted = begun.length > 0 ? begun : byName;
  return await Promise.all(
    wanted.map(async ([value, found]) => ({
      value,
      description: await describe(found, words.length + 1, (one) => project.summaryOf(flags, one)),
    })),
  );
}

function isBelow(path: readonly string[], words: readonly string[]): boolean {
  return path.length > words.length && words.every((word, at) => path[at] === word);
}

/** What a domain holds, or what a command does. */
async function describe(
  found: readonly FoundCommand[],
  depth: number,
  summaryOf: (found: FoundCommand) => Promise<string | undefined>,
): Promise<string | undefined> {
  const below = found.filter(({ path }) => path.length > depth).map(({ path }) => path.slice(depth).join(" "));
  return below.length === 0 && found[0] !== undefined ? await summaryOf(found[0]) : below.join(", ");
}
