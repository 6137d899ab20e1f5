import type { ToolResult } from "../../client/client.ts";
import { formatDuration } from "../../clock.ts";
import { attemptsNote } from "../../command/outcome.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { printData } from "../run-in-terminal.ts";
import { widthFor } from "../screens/layout.ts";
import { formatData, type OutputFormat } from "../screens/output.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";

interface Message {
  readonly type: string;
  readonly text: string;
}

/** The one shape our own servers answer in. */
interface Envelope {
  readonly data: unknown;
  readonly messages: readonly Message[];
}

export interface ResultOptions {
  readonly terminal: Terminal;
  readonly isQuiet: boolean;
  readonly format: OutputFormat;
  /** What was called, and how long that took; not known of a task that somebody else has started. */
  readonly name: string;
  readonly durationMs?: number | undefined;
}

/** Prints what a tool gave: data to stdout, and what a person wants to know beside it. */
export async function printToolResult(result: ToolResult, options: ResultOptions): Promise<ExitCode> {
  const { terminal, isQuiet } = options;
  const { colors } = terminal;
  const envelope = toEnvelope(result.structuredContent);
  if (result.isError === true) {
    terminal.say(`${colors.red("✗")} ${cleanLines(errorText(result, envelope))}${attemptsIn(result)}\n`);
    return Exit.CommandFailed;
  }
  if (!isQuiet) {
    for (const { type, text } of envelope?.messages ?? [])
      if (type === "warning" || type === "info") terminal.say(`${colors.yellow("!")} ${clean(text)}\n`);
    terminal.say(`${colors.green("✓")} ${clean(summaryOf(envelope, options))}${attemptsIn(result)}\n`);
  }
  printData(await toText(result, envelope, options), terminal);
  return Exit.Ok;
}

function summaryOf(envelope: Envelope | undefined, { name, durationMs }: ResultOptions): string {
  const said = envelope?.messages.findLast(({ type }) => type === "success");
  return said?.text ?? `${name} finished${durationMs === undefined ? "" : ` in ${formatDuration(durationMs)}`}`;
}

/** One of our own servers says how many attempts a call took. */
function attemptsIn({ _meta }: ToolResult): string {
  const { attempts } = (_meta?.["meanwhile/call"] ?? {}) as { readonly attempts?: unknown };
  return typeof attempts === "number" ? attemptsNote({ attempts }) : "";
}

async function toText(
  result: ToolResult,
  envelope: Envelope | undefined,
  { terminal, isQuiet, format }: ResultOptions,
): Promise<string> {
  if (envelope !== undefined) return await formatData(envelope, format, widthFor(terminal));
  if (result.structuredContent !== undefined)
    return await formatData({ data: result.structuredContent }, format, widthFor(terminal));
  if (format !== "plain") return await formatData({ data: { content: result.content } }, format);
  const parts = result.content.map((block) => ({ text: textOf(block), block }));
  // Pictures and sound are no text, so they are only told of.
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

type Block = ToolResult["content"][number];

function textOf(block: Block): string | undefined {
  const resource = (block.resource ?? {}) as { readonly text?: unknown };
  const text = block.type === "text" ? block.text : block.type === "resource" ? resource.text : undefined;
  return typeof text === "string" ? text : undefined;
}

function describeBlock(block: Block): string {
  const { type, data, mimeType, resource, uri, name } = block;
  const kind = typeof mimeType === "string" ? mimeType : type;
  if (typeof data === "string") return `[${kind}, ${Buffer.byteLength(data, "base64")} bytes; --json prints it]`;
  const address = uri ?? (resource as { readonly uri?: unknown } | undefined)?.uri;
  if (typeof address === "string")
    return typeof name === "string" ? `[${name}: ${address}]` : `[${address}; --json prints it]`;
  return `[${kind}; --json prints it]`;
}
