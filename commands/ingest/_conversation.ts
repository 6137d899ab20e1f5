import { Unreadable } from "../_pack/limits.ts";
import { decodeText } from "../transform/_text.ts";

/**
 * Reads an assistant's history, whoever wrote it: JSON Lines or JSON in which somewhere somebody says something. A turn
 * is an object with a speaker (`role`, `type`, `author.role`) and words (`content`, `text`, `message`, `parts`). Calls
 * of tools, their results and private reasoning are not words.
 */
export function readConversation(bytes: Uint8Array, name: string): Conversation {
  const text = decodeText(bytes);
  if (/\.(?:md|markdown|txt)$/i.test(name)) return { text, title: "", badLines: [] };
  const turns: Turn[] = [];
  const badLines: number[] = [];
  let title = "";
  for (const document of readDocuments(text, name, (line) => badLines.push(line))) {
    title ||= titleOf(document);
    collect(document, turns, 0);
  }
  return { text: turns.map(({ speaker, words }) => `${speaker}: ${words}\n`).join("\n"), title, badLines };
}

export interface Conversation {
  readonly text: string;
  readonly title: string;
  /** Lines of JSON Lines that could not be read. */
  readonly badLines: readonly number[];
}

interface Turn {
  readonly speaker: string;
  readonly words: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Deeper than this no history keeps its turns. */
const maxDepth = 12;
const speakers: Readonly<Record<string, string>> = {
  human: "user",
  model: "assistant",
  gemini: "assistant",
  bot: "assistant",
  ai: "assistant",
};
const known = new Set(["user", "assistant", "system", "human", "model", "gemini", "bot", "ai"]);
const unspoken = new Set([
  "tool_use",
  "tool_result",
  "thinking",
  "reasoning",
  "function_call",
  "function_call_output",
  "tool",
  "image",
  "redacted_thinking",
]);
/** Where histories keep their turns; nothing else is looked into. */
const containers = [
  "payload",
  "message",
  "messages",
  "history",
  "requests",
  "response",
  "conversation",
  "chat_messages",
  "mapping",
  "chat",
  "items",
  "turns",
];

function* readDocuments(text: string, name: string, onBadLine: (line: number) => void): Generator<unknown> {
  if (!/\.(?:jsonl|ndjson)$/i.test(name)) {
    try {
      yield JSON.parse(text);
      return;
    } catch (error) {
      throw new Unreadable(`it is no valid JSON: ${(error as Error).message}`);
    }
  }
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    let document: unknown;
    try {
      document = JSON.parse(line);
    } catch {
      // The last line of a history may be half written; the others are worth having.
      onBadLine(at + 1);
      continue;
    }
    yield document;
  }
}

function collect(value: unknown, turns: Turn[], depth: number): void {
  if (depth > maxDepth || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) collect(item, turns, depth + 1);
    return;
  }
  const fields = value as Fields;
  if (typeof fields.type === "string" && unspoken.has(fields.type)) return;
  const speaker = speakerOf(fields);
  const words =
    speaker === undefined
      ? ""
      : wordsOf(
          fields.content ??
            fields.text ??
            fields.parts ??
            (typeof fields.message === "string" ? fields.message : undefined),
        ).trim();
  if (speaker !== undefined && words !== "") {
    turns.push({ speaker, words });
    return;
  }
  addQuestion(fields, turns);
  for (const key of containers) {
    const inside = fields[key];
    collect(
      key === "mapping" && typeof inside === "object" && inside !== null ? Object.values(inside) : inside,
      turns,
      depth + 1,
    );
  }
}

/**
 * Histories without speakers: a line of what the user typed, a request with its response, a part of a message in a file
 * of its own.
 */
function addQuestion(fields: Fields, turns: Turn[]): void {
  const { message } = fields;
  const asked =
    typeof message === "object" && message !== null && !("role" in message)
      ? (message as Fields).text
      : "session_id" in fields
        ? fields.text
        : undefined;
  if (typeof asked === "string" && asked.trim() !== "") turns.push({ speaker: "user", words: asked.trim() });
  if (fields.type === "text" && "messageID" in fields && typeof fields.text === "string")
    turns.push({ speaker: "said", words: fields.text.trim() });
  if (typeof fields.value === "string" && fields.value.trim() !== "")
    turns.push({ speaker: "assistant", words: fields.value.trim() });
}

function speakerOf(fields: Fields): string | undefined {
  const author = fields.author as Fields | string | undefined;
  const candidates = [
    fields.role,
    typeof author === "object" && author !== null ? author.role : author,
    fields.sender,
    fields.type,
  ];
  const found = candidates.find((candidate) => typeof candidate === "string" && known.has(candidate));
  return typeof found === "string" ? (speakers[found] ?? found) : undefined;
}

function wordsOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(wordsOf).filter(Boolean).join("\n");
  if (typeof content !== "object" || content === null) return "";
  const fields = content as Fields;
  if (typeof fields.type === "string" && unspoken.has(fields.type)) return "";
  return wordsOf(fields.text ?? fields.parts ?? fields.content);
}

function titleOf(document: unknown): string {
  if (typeof document !== "object" || document === null || Array.isArray(document)) return "";
  const { title, name, summary } = document as Fields;
  const found = [title, name, summary].find((candidate) => typeof candidate === "string" && candidate.trim() !== "");
  return typeof found === "string" ? found.trim().slice(0, 200) : "";
}
