import type { ToolResult } from "../../client/client.ts";
import { formatDuration } from "../../clock.ts";
import { attemptsNote } from "../../command/outcome.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { printData } from "../run-in-terminal.ts";
import { printError } from "../screens/json-error.ts";
import { widthFor } from "../screens/layout.ts";
import { formatData, type OutputFormat } from "../screens/output.ts";
import { type OutFile, withoutFiles, writeResultFiles } from "../screens/result-files.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";

interface Message {
  readonly type: string;
  readonly text: string;
  readonly details?: unknown;
}

/** The `structuredContent` of a server that is Meanwhile. */
interface Envelope {
  readonly data: unknown;
  readonly messages: readonly Message[];
}

export interface ResultOptions {
  readonly terminal: Terminal;
  readonly isQuiet: boolean;
  readonly format: OutputFormat;
  /** The name of the tool or task. */
  readonly name: string;
  readonly durationMs?: number | undefined;
  /** The file for images and files of the result. */
  readonly out?: OutFile | undefined;
}

/** Prints the result of a tool: its data to stdout, its messages and errors to stderr. Returns the exit code. */
export async function printToolResult(result: ToolResult, options: ResultOptions): Promise<ExitCode> {
  const { terminal, isQuiet } = options;
  const { colors } = terminal;
  const envelope = toEnvelope(result.structuredContent);
  if (result.isError === true) {
    const message = errorText(result, envelope);
    terminal.say(`${colors.red("✗")} ${cleanLines(message)}${attemptsIn(result)}\n`);
    const at = placeIn(envelope);
    if (at !== undefined) terminal.say(`  ${colors.dim(`at ${clean(at)}`)}\n`);
    const { content, structuredContent } = result;
    const shown = structuredContent === undefined ? { content } : { structuredContent };
    await printError(
      { message, exitCode: Exit.CommandFailed, at },
      { terminal, format: options.format, result: shown },
    );
    return Exit.CommandFailed;
  }
  if (!isQuiet) {
    for (const { type, text } of envelope?.messages ?? [])
      if (type === "warning" || type === "info") terminal.say(`${colors.yellow("!")} ${clean(text)}\n`);
    terminal.say(`${colors.green("✓")} ${clean(summaryOf(envelope, options))}${attemptsIn(result)}\n`);
  }
  printData(await toText(result, envelope, options), terminal);
  if (options.out === undefined) return Exit.Ok;
  return writeResultFiles(result.content, options.out, terminal);
}

function summaryOf(envelope: Envelope | undefined, { name, durationMs }: ResultOptions): string {
  const said = envelope?.messages.findLast(({ type }) => type === "success");
  return said?.text ?? `${name} finished${durationMs === undefined ? "" : ` in ${formatDuration(durationMs)}`}`;
}

/** The number of attempts, which only a server that is Meanwhile reports. */
function attemptsIn({ _meta }: ToolResult): string {
  const { attempts } = (_meta?.["meanwhile/call"] ?? {}) as { readonly attempts?: unknown };
  return typeof attempts === "number" ? attemptsNote({ attempts }) : "";
}

async function toText(
  result: ToolResult,
  envelope: Envelope | undefined,
  { terminal, isQuiet, format, out }: ResultOptions,
): Promise<string> {
  if (envelope !== undefined) return await formatData(envelope, format, widthFor(terminal));
  if (result.structuredContent !== undefined)
    return await formatData({ data: result.structuredContent }, format, widthFor(terminal));
  if (format !== "plain") return await formatData({ data: { content: result.content } }, format);
  const parts = withoutFiles(result.content, out).map((block) => ({ text: textOf(block), block }));
  // Images and sounds are named on stderr, with their type and size.
  if (!isQuiet)
    for (const { text, block } of parts) if (text === undefined) terminal.say(`  ${clean(describeBlock(block))}\n`);
  return parts.map(({ text }) => (text === undefined ? "" : text.endsWith("\n") ? text : `${text}\n`)).join("");
}

function toEnvelope(content: ToolResult["structuredContent"]): Envelope | undefined {
  if (typeof content?.success !== "boolean" || !Array.isArray(content.messages) || !Object.hasOwn(content, "data"))
    return undefined;
  const messages = (content.messages as unknown[]).filter(isMessage);
  return { data: content.data, messages };
}

function isMessage(value: unknown): value is Message {
  const { type, text } = (value ?? {}) as Partial<Message>;
  return typeof type === "string" && typeof text === "string";
}

function errorText(result: ToolResult, envelope: Envelope | undefined): string {
  const errors = envelope?.messages.filter(({ type }) => type === "error").map(({ text }) => text) ?? [];
  const texts = errors.length > 0 ? errors : result.content.map(textOf).filter((text) => text !== undefined);
  const text = texts.join("\n").trimEnd();
  return text === "" ? "The tool said no, and not why." : text;
}

/** Where a command threw: the last line of an error's details, which Meanwhile sends to the local user only. */
function placeIn(envelope: Envelope | undefined): string | undefined {
  const details = envelope?.messages.findLast(({ type }) => type === "error")?.details;
  return typeof details === "string" ? /\nat (\S+:\d+:\d+)$/.exec(details)?.[1] : undefined;
}

type Block = ToolResult["content"][number];

/** The text of a content block. Undefined for other kinds, and for what is no content block. */
function textOf(given: Block | null): string | undefined {
  const block: Partial<Block> = given ?? {};
  const resource = (block.resource ?? {}) as { readonly text?: unknown };
  const text = block.type === "text" ? block.text : block.type === "resource" ? resource.text : undefined;
  return typeof text === "string" ? text : undefined;
}

function describeBlock(given: Block | null): string {
  const { type, data, mimeType, resource, uri, name }: Partial<Block> = given ?? {};
  if (typeof type !== "string") return `[${String(JSON.stringify(given)).slice(0, 60)} is no content block]`;
  const kind = typeof mimeType === "string" ? mimeType : type;
  if (typeof data === "string") return `[${kind}, ${Buffer.byteLength(data, "base64")} bytes; --out <file> writes it]`;
  const address = uri ?? (resource as { readonly uri?: unknown } | undefined)?.uri;
  if (typeof address === "string")
    return typeof name === "string" ? `[${name}: ${address}]` : `[${address}; --json prints it]`;
  return `[${kind}; --json prints it]`;
}
