import { systemClock } from "../../clock.ts";
import { type Catalog, type CatalogEntry, mergeSources } from "../../command/catalog.ts";
import { openFolders } from "../../command/folder-source.ts";
import type { CommandSource } from "../../command/source.ts";
import { Exit, type ExitCode, messageOf } from "../../errors.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { silentLog } from "../../log.ts";
import { toTool } from "../../mcp/command-tools.ts";
import { thisProgram } from "../../program/program.ts";
import {
  codeSources,
  findForTerminal,
  servedCatalog,
  takingPlaceOfBundled,
  unknownLongTools,
} from "../../project/project-commands.ts";
import { gatewayOf } from "../../runtime/gateway-of.ts";
import { createHook, openHook } from "../../runtime/open-hook.ts";
import { loadSettings, type Settings } from "../../settings/settings.ts";
import { storeExists } from "../../store/open.ts";
import type { DeferralRules } from "../../task/deferral.ts";
import { announceTaskMode, type KnownDurations } from "../../task/outlook.ts";
import { columnsOf, toolsTable } from "../screens/tools-view.ts";
import { showWaiting } from "../screens/waiting-line.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";
import type { VerbCall } from "../verb.ts";
import { verbNamed } from "../verb-list.ts";

interface ListedTools extends Pick<VerbCall, "flags" | "terminal" | "context"> {
  readonly isJson: boolean;
}

/** `meanwhile tools`: the commands as MCP clients see them, and what is wrong with their files. */
export async function listOwnTools({ flags, terminal, context, isJson }: ListedTools): Promise<ExitCode> {
  const { cwd, env } = context;
  const settings = await loadSettings({ cwd, env, flags });
  const folders = await openFolders(servedCatalog(settings, silentLog));
  const hook = createHook(settings, silentLog);
  const gateway = await gatewayOf(settings, { clock: systemClock, log: silentLog });
  const own = [folders, ...codeSources(settings)];
  const hooked = hook === undefined ? [] : [hook.tools];
  gateway?.standBeside([...own, ...hooked]);
  if (gateway !== undefined) await showWaiting(gateway.askAll(cwd), { who: Object.keys(settings.upstreams), terminal });
  const sources = [...own, ...(gateway?.sources ?? []), ...hooked];
  const catalog = mergeSources(sources, { log: silentLog });
  if (hook !== undefined) await openHook(hook, systemClock);
  const entries = withTypedWords(withUpstreams(catalog.entries, gateway), settings);
  terminal.print(
    isJson
      ? toJson(
          { entries, sources, problems: catalog.problems, rules: settings.deferral },
          await readKnown(catalog, settings, terminal),
        )
      : toolsTable(entries, columnsOf(terminal), settings.deferral),
  );
  reportProblems(catalog, terminal);
  for (const { path: words, file } of takingPlaceOfBundled(catalog.entries))
    terminal.say(
      `${terminal.colors.yellow("!")} \`${words.join(" ")}\` takes the place of a bundled command in a terminal here: ${clean(file)}\n`,
    );
  const unknown = unknownLongTools(settings.deferral.tools, catalog);
  if (unknown !== undefined) terminal.say(`${terminal.colors.yellow("!")} ${clean(unknown)}\n`);
  const isWhole = catalog.problems.length === 0;
  gateway?.close();
  return isWhole ? Exit.Ok : Exit.CommandFailed;
}

/** How long the commands take, by tool name. A listing makes no store, and does without one that cannot be read. */
async function readKnown(
  catalog: Catalog,
  settings: Settings,
  terminal: Terminal,
): Promise<ReadonlyMap<string, KnownDurations>> {
  const known = new Map<string, KnownDurations>();
  if (!(await storeExists(settings.store))) return known;
  try {
    const { openTasks } = await import("../../runtime/open-tasks.ts");
    const tasks = await openTasks(settings);
    try {
      for (const { toolName } of catalog.entries) {
        const durations = await tasks.history.known(toolName);
        if (durations !== undefined) known.set(toolName, durations);
      }
    } finally {
      await tasks.close();
    }
  } catch (error) {
    terminal.say(`${terminal.colors.yellow("!")} How long the commands take is not known: ${messageOf(error)}\n`);
  }
  return known;
}

/** The tools of upstreams with the words that they are typed by. */
function withUpstreams(entries: readonly CatalogEntry[], gateway: Gateway | undefined): readonly CatalogEntry[] {
  const owners = (gateway?.upstreams ?? []).map(({ name }, at) => ({ name, source: gateway?.sources[at] }));
  return entries.map((entry) => {
    const owner = owners.find(({ source }) => source?.entries.some(({ command }) => command === entry.command));
    if (owner === undefined) return entry;
    const tool = String(entry.command.foreign?.listing.name ?? entry.toolName);
    return { ...entry, upstream: owner.name, path: [owner.name, tool] };
  });
}

/** What is registered under a word that is somebody else's in a terminal is called there as by any client. */
function withTypedWords(entries: readonly CatalogEntry[], settings: Settings): readonly CatalogEntry[] {
  const typed = new Set(
    findForTerminal(settings).flatMap(({ path, isHooked, upstream }) =>
      isHooked === true || upstream !== undefined ? [path.join(" ")] : [],
    ),
  );
  const isReached = ({ path, isListedByServer }: CatalogEntry) =>
    isListedByServer !== true || (typed.has(path.join(" ")) && verbNamed(path[0] ?? "") === undefined);
  return entries.map((entry) => (isReached(entry) ? entry : { ...entry, path: ["call", ".", entry.toolName] }));
}

interface Listed {
  readonly entries: readonly CatalogEntry[];
  readonly sources: readonly CommandSource[];
  readonly problems: Catalog["problems"];
  readonly rules: DeferralRules;
}

function toJson({ entries, sources, problems, rules }: Listed, known: ReadonlyMap<string, KnownDurations>): string {
  const tools = entries.map((entry) => {
    const stats = known.get(entry.toolName);
    return {
      ...toTool(entry, rules),
      command: `${thisProgram.name} ${entry.path.join(" ")}`,
      file: entry.file,
      source: sources.find((source) => source.get(entry.toolName)?.command === entry.command)?.name,
      bundled: entry.isBundled === true,
      ...(entry.command.scopes.length > 0 && { scopes: entry.command.scopes }),
      ...announceTaskMode(entry, stats, rules),
      ...(stats !== undefined && { stats }),
    };
  });
  return `${JSON.stringify({ tools, problems }, null, 2)}\n`;
}

function reportProblems(catalog: Catalog, terminal: Terminal): void {
  const { red } = terminal.colors;
  for (const { toolName, file, text, isServed } of catalog.problems) {
    const what = toolName === undefined || isServed === true ? "" : `${toolName} is missing: `;
    // Of an upstream that is down the sentence names it.
    const where = text.toLowerCase().startsWith(file.toLowerCase()) ? "" : `${clean(file)}: `;
    terminal.say(`${red("✗")} ${what}${where}${cleanLines(text)}\n`);
  }
}
