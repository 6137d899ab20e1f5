import type { Readable, Writable } from "node:stream";
import { createColors } from "picocolors";
import { type Clock, formatDuration, systemClock } from "../clock.ts";
import type { Answer, Question } from "../command/context.ts";
import { isLink } from "../command/foreign-question.ts";
import { clean, cleanKeepingColors } from "../screen/clean.ts";
import { cut } from "../screen/width.ts";
import { secondsLeft } from "../task/estimate.ts";
import type { ProgressUpdate } from "../task/progress.ts";
import type { ProcessContext } from "./process-context.ts";
import {
  type Choice,
  choicesOf,
  defaultOf,
  fieldsOf,
  isNumberField,
  notesOf,
  type QuestionField,
  refuseText,
} from "./screens/question-fields.ts";

export { clean, cleanLines } from "../screen/clean.ts";

/** The person's end of the line: data out, words and progress beside it, keys in. */
export interface Terminal {
  readonly colors: ReturnType<typeof createColors>;
  /** Progress can be drawn over: stderr is a terminal. */
  readonly isLive: boolean;
  /** Questions can be answered: stdin is a terminal too. */
  readonly canAsk: boolean;
  readonly columns: number;
  readonly rows: number;
  /** Data goes to a terminal too, which would obey what is in it. */
  readonly isDataShown: boolean;
  /** The shell's working folder. */
  readonly folder: string;
  /** Data, to stdout. On a screen nothing in it is obeyed but our colours; in a pipe it stays as it is. */
  print(text: string): void;
  /** Words for the person, to stderr, where nothing in them is obeyed but our colours. */
  say(text: string): void;
  /** Takes away what stands on this line, or on so many lines above it. */
  erase(lines?: number): void;
  readInput(): Promise<string>;
  /** Ctrl-C is `interrupt`; a terminal that is closed, or a polite kill, is `leave`. */
  onInterrupt(listener: (how: "interrupt" | "leave") => void): () => void;
  /** Ends the process at once. */
  leave(code: number): void;
  /** What questions read keys from and are drawn on. */
  readonly prompt: { readonly input: Readable; readonly output: Writable };
}

/** The terminal of a process. `write` writes to stdout, also after stdout was taken from the commands. */
export function openTerminal(
  context: Pick<ProcessContext, "stdin" | "stdout" | "stderr" | "env" | "cwd" | "signals" | "exit">,
  write: (text: string) => unknown,
  options: { noColor: boolean },
): Terminal {
  const { env, stderr, stdin, stdout, signals } = context;
  const isLive = stderr.isTTY === true && env.TERM !== "dumb";
  const hasColor = isLive && !options.noColor && (env.NO_COLOR ?? "") === "";
  return {
    colors: createColors(hasColor),
    isLive,
    canAsk: isLive && stdin.isTTY === true,
    get columns() {
      return stderr.columns ?? stdout.columns ?? 80;
    },
    get rows() {
      return stderr.rows ?? 24;
    },
    isDataShown: stdout.isTTY === true,
    get folder() {
      return context.cwd;
    },
    print: (text) => write(stdout.isTTY === true ? cleanKeepingColors(text, { hasColor }) : text),
    say: (text) => stderr.write(cleanKeepingColors(text, { hasColor })),
    erase: (lines = 0) => stderr.write(lines === 0 ? "\r\x1b[2K" : `\x1b[${lines}A\x1b[0J`),
    async readInput() {
      const parts: Buffer[] = [];
      for await (const part of stdin as AsyncIterable<Buffer>) parts.push(part);
      return Buffer.concat(parts).toString("utf8");
    },
    onInterrupt(listener) {
      const interrupt = () => listener("interrupt");
      const leave = () => listener("leave");
      signals.on("SIGINT", interrupt);
      for (const signal of leaveSignals) signals.on(signal, leave);
      return () => {
        signals.off("SIGINT", interrupt);
        for (const signal of leaveSignals) signals.off(signal, leave);
      };
    },
    leave: (code) => context.exit(code),
    prompt: { input: stdin, output: stderr },
  };
}

/** The terminal was closed, or the process was asked to end. */
const leaveSignals = ["SIGTERM", "SIGHUP"] as const;

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const frameMs = 100;
const plainLineMs = 1_000;
const barWidth = 24;

/** Draws the four stages of a run: announce, progress, result; the data itself is printed by the caller. */
export class StageView {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  readonly #estimateSeconds: number | undefined;
  readonly #startedAt: number;
  #update: ProgressUpdate | undefined;
  #frame = 0;
  #isDrawn = false;
  #cancelFrame: (() => void) | undefined;
  #lastLineAt = Number.NEGATIVE_INFINITY;
  #lastLine = "";

  /** `elapsedMs`: how long what is shown has been going on already. */
  constructor(
    terminal: Terminal,
    options: { estimateSeconds?: number | undefined; elapsedMs?: number | undefined; clock?: Clock } = {},
  ) {
    this.#terminal = terminal;
    this.#clock = options.clock ?? systemClock;
    this.#estimateSeconds = options.estimateSeconds;
    this.#startedAt = this.#clock.monotonic() - (options.elapsedMs ?? 0);
    if (terminal.isLive) this.#scheduleFrame();
  }

  announce(text: string): void {
    this.line(`${this.#terminal.colors.cyan("›")} ${clean(text)}`);
  }

  progress(update: ProgressUpdate): void {
    this.#update = update;
    if (!this.#terminal.isLive) this.#plainLine(false);
  }

  /** A line of its own, above the bar. */
  line(text: string): void {
    this.#erase();
    this.#terminal.say(`${text}\n`);
  }

  /** Takes the bar away; nothing is drawn after this. */
  end(): void {
    this.#cancelFrame?.();
    this.#cancelFrame = undefined;
    this.#erase();
    if (!this.#terminal.isLive) this.#plainLine(true);
    this.#update = undefined;
  }

  /** Lets a question have the screen. */
  async pause<T>(during: () => Promise<T>): Promise<T> {
    this.#cancelFrame?.();
    this.#erase();
    try {
      return await during();
    } finally {
      if (this.#terminal.isLive) this.#scheduleFrame();
    }
  }

  #scheduleFrame(): void {
    this.#cancelFrame = this.#clock.after(frameMs, () => {
      this.#draw();
      this.#scheduleFrame();
    });
  }

  #draw(): void {
    this.#frame = (this.#frame + 1) % frames.length;
    const { colors, columns } = this.#terminal;
    const room = Math.max(20, columns - 1);
    const spinner = frames[this.#frame] ?? "";
    const percentage = this.#update?.percentage;
    const bar = percentage === undefined ? "" : `${drawBar(percentage)} ${`${Math.floor(percentage)}%`.padStart(4)}`;
    const [words, time] = this.#facts();
    const timeRoom = time === "" ? 0 : time.length + 2;
    const left = cut([bar, words].filter(Boolean).join("  "), room - 2 - timeRoom);
    const text = [left, time].filter(Boolean).join("  ");
    const painted = bar === "" ? text : `${colors.cyan(text.slice(0, barWidth))}${text.slice(barWidth)}`;
    this.#terminal.erase();
    this.#terminal.say(`${colors.cyan(spinner)} ${painted}`);
    this.#isDrawn = true;
  }

  /** What it says, and how long it takes; the second is never cut. */
  #facts(): [words: string, time: string] {
    const elapsedMs = this.#clock.monotonic() - this.#startedAt;
    const percentage = this.#update?.percentage;
    const left =
      percentage === 100 ? undefined : secondsLeft({ elapsedMs, percentage, estimateSeconds: this.#estimateSeconds });
    const time =
      left === undefined || left < 0.5
        ? formatDuration(Math.floor(elapsedMs / 1000) * 1000)
        : `about ${formatDuration(Math.ceil(left) * 1000).replace(".0 s", " s")} left`;
    return [clean(this.#update?.message ?? ""), time.replace(/^0 ms$/, "").replace(".0 s", " s")];
  }

  #plainLine(isLast: boolean): void {
    if (this.#update === undefined) return;
    const { percentage, message } = this.#update;
    const line = [
      percentage === undefined ? "" : `${Math.floor(percentage)}%`.padStart(4),
      ...(percentage === 100 ? [clean(message ?? "")] : this.#facts()),
    ]
      .filter(Boolean)
      .join("  ");
    const now = this.#clock.monotonic();
    if (line === this.#lastLine || (!isLast && now - this.#lastLineAt < plainLineMs)) return;
    this.#lastLineAt = now;
    this.#lastLine = line;
    this.#terminal.say(`${line}\n`);
  }

  #erase(): void {
    if (!this.#isDrawn) return;
    this.#isDrawn = false;
    this.#terminal.erase();
  }
}

function drawBar(percentage: number): string {
  const full = Math.round((percentage / 100) * barWidth);
  return "━".repeat(full) + "─".repeat(barWidth - full);
}

/**
 * Asks in the terminal, one line a field, on stderr. Esc and Ctrl-C both cancel the question; `onCtrlC` tells them
 * apart.
 */
export async function askInTerminal(
  question: Question,
  { prompt }: Pick<Terminal, "prompt">,
  onCtrlC: () => void = () => {},
): Promise<Answer> {
  const onKey = (_: unknown, key: { readonly ctrl?: boolean; readonly name?: string }) =>
    key.ctrl === true && key.name === "c" && onCtrlC();
  const { input } = prompt;
  const prompts = await import("@clack/prompts");
  // As a key with a name Esc also moves the cursor of a yes or no, so that the choice beside it stays on the screen.
  prompts.settings.aliases.delete("escape");
  for (const sequence of ["\x1b", "\x1b\x1b"]) prompts.settings.aliases.set(sequence, "cancel");
  input.on("keypress", onKey);
  return await askFields({ ...prompt, prompts }, question).finally(() => input.off("keypress", onKey));
}

async function askFields(asking: Asking, question: Question): Promise<Answer> {
  const { prompts } = asking;
  if (isLink(question)) return await askConsent(asking, question);
  const content: Record<string, unknown> = {};
  const fields = fieldsOf(question.schema);
  for (const field of fields) {
    const label = fields.length === 1 ? clean(question.message) : `${clean(question.message)} ${fieldLabel(field)}`;
    const answer = await promptField(asking, `${label}${notesOf(field)}`, field);
    if (prompts.isCancel(answer)) return { action: "cancel" };
    if (answer !== undefined && answer !== "") content[field.name] = answer;
  }
  return { action: "accept", content };
}

/** A link has no fields: whoever has opened it says yes. */
async function askConsent({ prompts, input, output }: Asking, { message }: Question): Promise<Answer> {
  const isOpened = await prompts.confirm({
    message: `${clean(message)} (open the link, then say yes)`,
    initialValue: false,
    input,
    output,
  });
  if (prompts.isCancel(isOpened)) return { action: "cancel" };
  return isOpened ? { action: "accept", content: {} } : { action: "decline" };
}

interface Asking {
  readonly prompts: typeof import("@clack/prompts");
  readonly input: Readable;
  readonly output: Writable;
}

async function promptField({ prompts, ...streams }: Asking, message: string, field: QuestionField): Promise<unknown> {
  const { schema, isRequired } = field;
  const { default: suggested } = schema;
  if (schema.type === "boolean" && (isRequired || suggested !== undefined))
    return await prompts.confirm({ message, initialValue: suggested === true, ...streams });
  const choices = schema.type === "boolean" ? yesOrNo : choicesOf(schema);
  if (choices !== undefined && schema.type === "array") {
    const initialValues = Array.isArray(suggested) ? suggested.map(String) : [];
    return await prompts.multiselect({ message, options: choices, initialValues, required: isRequired, ...streams });
  }
  if (choices !== undefined) {
    const options = isRequired ? choices : [...choices, noAnswer];
    const chosen = await prompts.select({
      message,
      options,
      ...streams,
      ...(typeof suggested === "string" && { initialValue: suggested }),
    });
    if (chosen === noAnswer.value) return undefined;
    return schema.type === "boolean" && typeof chosen === "string" ? chosen === "true" : chosen;
  }
  const fallback = defaultOf(schema);
  const hint = fallback === undefined ? {} : { placeholder: fallback, defaultValue: fallback };
  const answer = await prompts.text({
    message,
    validate: (text) => refuseText(text ?? "", field),
    ...streams,
    ...hint,
  });
  return isNumberField(schema) && typeof answer === "string" && answer !== "" ? Number(answer) : answer;
}

const yesOrNo: Choice[] = [
  { value: "true", label: "Yes" },
  { value: "false", label: "No" },
];
/** A value that no choice has. */
const noAnswer: Choice = { value: "\0", label: "(no answer)" };

function fieldLabel({ name, schema }: QuestionField): string {
  const label = [schema.title, schema.description].find((text) => typeof text === "string") ?? name;
  return `(${clean(label)})`;
}
