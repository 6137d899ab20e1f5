import type { CatalogEntry } from "../command/catalog.ts";
import type { FoundCommand } from "../command/discover.ts";
import { CommandError, type ExitCode, UsageError } from "../errors.ts";
import { showWaiting } from "./screens/waiting-line.ts";
import type { Terminal } from "./terminal.ts";

/** An upstream whose tools are typed behind its name. */
export interface TerminalUpstream {
  /** A tool by the upstream's own name for it. */
  find(tool: string): CatalogEntry | undefined;
  /** Has it say what it lists; why it could not. */
  ask(): Promise<string | undefined>;
  close(): void;
}

/** Whether these words are to start an upstream that has not said yet what it lists: its name, and a tool of it. */
export function isForUpstream(names: readonly string[], [first = "", tool = "-"]: readonly string[]): boolean {
  return names.includes(first) && !tool.startsWith("-");
}

interface Asked {
  readonly name: string;
  readonly terminal: Terminal;
}

/** Has it say what it lists, for whoever looks next. */
export async function askUpstream(upstream: TerminalUpstream, asked: Asked): Promise<void> {
  try {
    await askWell(upstream, asked);
  } finally {
    upstream.close();
  }
}

async function askWell(upstream: TerminalUpstream, { name, terminal }: Asked): Promise<void> {
  const trouble = await showWaiting(upstream.ask(), { who: [name], terminal });
  if (trouble !== undefined) throw new CommandError(trouble);
}

/** Runs a tool of an upstream, which this process starts and ends. */
export async function runUpstreamTool(
  upstream: TerminalUpstream,
  { upstream: name = "", toolName, path }: FoundCommand,
  { run, terminal }: { readonly run: (entry: CatalogEntry) => Promise<ExitCode>; readonly terminal: Terminal },
): Promise<ExitCode> {
  try {
    if (upstream.find(toolName) === undefined) await askWell(upstream, { name, terminal });
    const entry = upstream.find(toolName);
    if (entry === undefined) throw new UsageError(`The upstream ${name} lists no tool ${toolName} any more.`);
    return await run({ ...entry, path });
  } finally {
    upstream.close();
  }
}
