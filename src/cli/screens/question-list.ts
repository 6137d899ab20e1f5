import { toMinute } from "../../clock.ts";
import { widthOf, wrap } from "../../screen/width.ts";
import { clean, type Terminal } from "../terminal.ts";
import { leastRoom } from "./layout.ts";

interface AskedQuestion {
  readonly tool: string;
  readonly taskId: string;
  readonly message: string;
  readonly until?: number;
}

/**
 * Returns the open questions of tasks, each on a line of its own. On a terminal a long question goes on below its
 * beginning, or below the task where the screen is narrow; in a pipe it is one line.
 */
export function describeQuestions(
  questions: readonly AskedQuestion[],
  { isLive, columns }: Pick<Terminal, "isLive" | "columns">,
): string {
  const width = isLive ? columns : Number.POSITIVE_INFINITY;
  return questions.map((question) => `${describeQuestion(question, width)}\n`).join("");
}

/** The words of a question, and until when it can be answered. */
export function questionText({ message, until }: Pick<AskedQuestion, "message" | "until">): string {
  return `«${message}»${until === undefined ? "" : `, until ${toMinute(until)}`}`;
}

function describeQuestion({ tool, taskId, ...question }: AskedQuestion, width: number): string {
  const lead = `    ${taskId.slice(0, 8)}  ${clean(tool)}`;
  const text = clean(questionText(question));
  const column = widthOf(lead) + 2;
  if (column + widthOf(text) <= width) return `${lead}  ${text}`;
  if (width - column >= leastRoom) return `${lead}  ${wrap(text, width - column).join(`\n${" ".repeat(column)}`)}`;
  const indent = " ".repeat(6);
  const lines = wrap(text, Math.max(leastRoom, width - indent.length));
  return [lead, ...lines.map((line) => indent + line)].join("\n");
}
