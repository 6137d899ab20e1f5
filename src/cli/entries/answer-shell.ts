import { systemClock, within } from "../../clock.ts";
import type { Suggestion } from "../../command/command.ts";
import { takeStdout } from "../../command/process-guard.ts";
import { completeTaskId } from "../../completion/completers.ts";
import { filterBy } from "../../completion/filter.ts";
import { readRecords } from "../../daemon/record.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { type ProcessEnvironment, userFolder } from "../../paths.ts";
import type { ProjectFlags } from "../../project/project.ts";
import { findForTerminal, findServed, findUpstreamTools } from "../../project/project-commands.ts";
import { StoredCatalog } from "../../project/stored-catalog.ts";
import { readSettings, type Settings } from "../../settings/settings.ts";
import { type Store, storeExists } from "../../store/open.ts";
import type { TaskStatus } from "../../task/task.ts";
import { type CompletionFacts, completeLine } from "../completion/complete-line.ts";
import type { Completed } from "../completion/grammar.ts";
import { isShell, readShell, toAnswer } from "../completion/shells.ts";
import type { ProcessContext } from "../process-context.ts";

/** Somebody has pressed a key and waits: better no answer than a late one. */
const limitMs = 3_000;
const completerMs = 2_000;
const summaryMs = 500;
const maxTasks = 100;

/**
 * `meanwhile _complete --shell <shell> -- …`: what the shells' scripts call. Prints what can stand at the cursor, and
 * nothing else: whatever goes wrong, nothing is said and the exit code is 0.
 */
export async function run(
  words: readonly string[],
  { verbs, context }: { readonly verbs: CompletionFacts["verbs"]; readonly context: ProcessContext },
): Promise<ExitCode> {
  const print = takeOver(context);
  const answer = answerShell(words, { verbs, cwd: context.cwd, env: context.env }).catch(() => "");
  await print(await within(systemClock, limitMs, answer, () => ""));
  return Exit.Ok;
}

/** Keeps stdout for the answer, and the rest of the process silent. */
function takeOver({ guarded }: ProcessContext): (text: string) => Promise<void> {
  const mute = (...parts: unknown[]) => {
    const done = parts.at(-1);
    if (typeof done === "function") done();
    return true;
  };
  guarded.stderr.write = mute as typeof guarded.stderr.write;
  const { write } = takeStdout(guarded);
  for (const event of ["uncaughtException", "unhandledRejection"]) guarded.on(event, () => {});
  guarded.on("exit", () => {
    guarded.exitCode = Exit.Ok;
  });
  return (text) => new Promise((resolve) => write(text, () => resolve()));
}

interface Surroundings {
  readonly verbs: CompletionFacts["verbs"];
  readonly cwd: string;
  readonly env: ProcessEnvironment;
}

/** The answer to one script's question. */
export async function answerShell(words: readonly string[], surroundings: Surroundings): Promise<string> {
  const [option, shell, dashes, ...rest] = words;
  if (option !== "--shell" || !isShell(shell) || dashes !== "--") return "";
  const line = readShell(shell, rest);
  const completed: Completed = line.isRedirection
    ? { before: "", offer: { kind: "files" } }
    : await completeLine(line, toProject(surroundings, { hasDescriptions: shell !== "bash" }));
  return toAnswer(shell, withFitting(completed, line.current), line);
}

/**
 * Only what begins with what was typed, upper or lower case; failing that, the one value that has its letters. A shell
 * would replace what was typed by what several such values have in common, and that may be less.
 */
function withFitting(completed: Completed, current: string): Completed {
  const { before, offer } = completed;
  if (offer.kind !== "values") return completed;
  const typed = current.slice(before.length);
  const fitting = filterBy(offer.suggestions, typed, ({ value }) => value);
  const isBegun = fitting.every(({ value }) => value.toLowerCase().startsWith(typed.toLowerCase()));
  return { before, offer: { kind: "values", suggestions: isBegun || fitting.length === 1 ? fitting : [] } };
}

function toProject(
  { verbs, cwd, env }: Surroundings,
  { hasDescriptions }: { hasDescriptions: boolean },
): CompletionFacts {
  let known: { readonly settings: Settings; readonly stored: StoredCatalog } | undefined;
  const open = (flags: ProjectFlags) => {
    if (known !== undefined) return known;
    const commands = flags.commands?.map((folder) => folder.replace(/^~(?=\/|$)/, userFolder(env)));
    const { settings } = readSettings({ cwd, env, flags: { ...flags, ...(commands !== undefined && { commands }) } });
    known = { settings, stored: new StoredCatalog(settings.home, settings.commandFolders) };
    return known;
  };
  return {
    verbs,
    async findCommands(flags) {
      // A config that cannot be read leaves our own verbs.
      try {
        return findForTerminal(open(flags).settings);
      } catch {
        return [];
      }
    },
    findServed: async (flags) => {
      const { settings } = open(flags);
      return [...findServed(settings), ...findUpstreamTools(settings).filter(({ servedAs }) => servedAs !== undefined)];
    },
    toolPrefix: async (flags) => open(flags).settings.toolPrefix,
    describe: async (flags, found) => await open(flags).stored.describe(found),
    async complete(command, request) {
      const { completeWithDescriptions } = await import("../../completion/complete.ts");
      const { suggestions } = await completeWithDescriptions(command.inputSchema, request, {
        completers: command.complete,
        limitMs: completerMs,
      });
      return suggestions;
    },
    summaryOf: async (flags, found) =>
      hasDescriptions
        ? await within(
            systemClock,
            summaryMs,
            open(flags)
              .stored.describe(found)
              .then((command) => command?.summary),
          )
        : undefined,
    async findUpstreams(flags) {
      const { upstreams, home } = open(flags).settings;
      const wrapped = [...readRecords(home).values()].flatMap(({ wraps = [] }) => wraps);
      return [...new Set([...Object.keys(upstreams), ...wrapped])];
    },
    findTasks: async (flags, statuses) => await findTasks(open(flags).settings, statuses),
    findKeys: async (flags) => await findKeys(open(flags).settings),
  };
}

/** A look at the tasks makes no store. */
async function findTasks(
  settings: Settings,
  statuses: readonly TaskStatus[] | undefined,
): Promise<readonly Suggestion[]> {
  const [{ callerKey }, { localUserIn }] = await Promise.all([
    import("../../command/caller.ts"),
    import("../../runtime/home-id.ts"),
  ]);
  return await inStore(settings, async (store) => {
    const { tasks } = await store.list(
      { caller: callerKey(localUserIn(settings)) },
      { limit: maxTasks, ...(statuses !== undefined && { statuses }) },
    );
    const known = tasks.map(({ taskId, status, command, statusMessage }) => ({
      taskId,
      status,
      statusMessage: [command, statusMessage].filter(Boolean).join(", "),
    }));
    const found = await completeTaskId(() => known)("", {
      arguments: {},
      context: {},
      signal: new AbortController().signal,
    });
    return found.map((item) => (typeof item === "string" ? { value: item } : item));
  });
}

async function findKeys(settings: Settings): Promise<readonly string[]> {
  return await inStore(settings, async ({ shared }) =>
    (await shared.keys.list(settings.project)).keys.map(({ name }) => name),
  );
}

/** Reads from the store; nothing where there is none. */
async function inStore<T>(settings: Settings, read: (store: Store) => Promise<readonly T[]>): Promise<readonly T[]> {
  if (!(await storeExists(settings.store))) return [];
  const { openNodeStore } = await import("../../runtime/open-node-store.ts");
  const store = await openNodeStore(settings, {});
  try {
    return await read(store);
  } finally {
    await store.close();
  }
}
