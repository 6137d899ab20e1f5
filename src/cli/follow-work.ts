import { Detach } from "../client/detach.ts";
import type { Answer, Question } from "../command/context.ts";
import { Cancelled, Exit, messageOf } from "../errors.ts";
import type { ProgressUpdate } from "../task/progress.ts";
import { HeldLines } from "./screens/held-lines.ts";
import { sayStillOpen } from "./screens/open-question.ts";
import { askInTerminal, clean, StageView, type Terminal } from "./terminal.ts";

/** Work that is done elsewhere, by a worker of ours or by a server, and may become a task or be one already. */
export interface WorkElsewhere {
  readonly terminal: Terminal;
  /** A bar shows how far it is. */
  readonly hasBar: boolean;
  readonly estimateSeconds?: number | undefined;
  /** How long it has been going on already. */
  readonly elapsedMs?: number | undefined;
  readonly taskId?: string | undefined;
  /** A task outlives us here: whoever runs it does. */
  readonly canDetach: boolean;
  /** The words that bring a person back to a task that was left alone. */
  readonly wayBack: (taskId: string) => string;
  /** The words that answer a task's question. */
  readonly wayToAnswer: (taskId: string, fields: readonly string[]) => string;
  /** The task is only looked at: Ctrl-C leaves, and does not stop it. */
  readonly isWatching?: boolean | undefined;
  /** Ends the waiting, and the work. */
  readonly deadline?: AbortSignal | undefined;
}

/** Nothing came of it here, but the work goes on. */
export const leftAlone = Symbol("left alone");

/** Waits for work: shows how far it is, asks its questions, and asks on Ctrl-C what is meant. */
export async function followWork<T>(
  options: WorkElsewhere,
  work: (screen: WorkScreen, signal: AbortSignal) => Promise<T>,
): Promise<T | typeof leftAlone> {
  const { terminal, deadline } = options;
  const stop = new AbortController();
  const detach = () => stop.abort(new Detach());
  const screen = new WorkScreen(options, detach);
  let isChoosing = false;
  const choose = async () => {
    isChoosing = true;
    const choice = await askHowToLeave(screen, options);
    isChoosing = false;
    if (choice === "detach") detach();
    if (choice === "cancel") stop.abort(new Cancelled("Cancelled."));
  };
  const stopListening = terminal.onInterrupt((how) => {
    const isTask = screen.taskId !== undefined;
    if (stop.signal.aborted || (isChoosing && how === "interrupt")) return terminal.leave(Exit.Cancelled);
    // A terminal that is closed leaves a task alone where that means something.
    if (options.isWatching === true || (how === "leave" && isTask && options.canDetach)) return detach();
    if (how === "leave" || !isTask) return stop.abort(new Cancelled("Cancelled."));
    void choose();
  });
  try {
    return await work(screen, deadline === undefined ? stop.signal : AbortSignal.any([stop.signal, deadline]));
  } catch (error) {
    screen.end();
    if (stop.signal.reason instanceof Detach) {
      const { taskId = "", openQuestion } = screen;
      if (openQuestion === undefined) terminal.say(`  It keeps running: ${options.wayBack(taskId)}\n`);
      else sayStillOpen(options, { until: openQuestion.until, answerWords: options.wayToAnswer(taskId, []) });
      return leftAlone;
    }
    // Whatever was made of it elsewhere, it was ended on purpose.
    if (stop.signal.aborted) throw stop.signal.reason;
    // A server that shares our terminal may have obeyed the same Ctrl-C.
    if (isChoosing) throw new Cancelled(`Cancelled: ${clean(messageOf(error))}`);
    throw error;
  } finally {
    screen.end();
    stopListening();
  }
}

const keepRunning = "keep it running";

/**
 * Asks on a terminal what Ctrl-C means; elsewhere Ctrl-C cancels. A second Ctrl-C, in the menu, keeps the task running,
 * as the preselected choice says; it cancels work that would end with this process.
 */
async function askHowToLeave(
  screen: WorkScreen,
  { terminal, canDetach }: WorkElsewhere,
): Promise<"cancel" | "detach" | "stay"> {
  if (!terminal.canAsk) return "cancel";
  const choices = [...(canDetach ? [keepRunning] : []), "stay", "cancel the task"];
  const leave = { enum: choices, default: choices[0] };
  const question = {
    message: "Leave how?",
    isConfirmation: false,
    schema: { type: "object", properties: { leave }, required: ["leave"] },
  };
  let isMeant = false;
  const answer = await screen.lend(() => askInTerminal(question, terminal, () => (isMeant = true)));
  if (answer.action !== "accept") {
    if (isMeant) return canDetach ? "detach" : "cancel";
    // Over a slow line an arrow key may arrive in two parts, and the first part reads as Esc.
    screen.line("  Nothing was chosen: the task goes on, and this terminal still follows it");
    return "stay";
  }
  return answer.content.leave === keepRunning ? "detach" : answer.content.leave === "stay" ? "stay" : "cancel";
}

/** A question with the time when it expires, where that is known. */
type AskedQuestion = Question & { readonly until?: number };

/** What a person sees of the work: a bar, lines above it, and its questions in the place of both. */
export class WorkScreen {
  readonly #work: WorkElsewhere;
  readonly #leave: () => void;
  readonly #bar: StageView | undefined;
  readonly #lines: HeldLines;
  #announced: string | undefined;
  taskId: string | undefined;
  /** The question that the person left without an answer. */
  openQuestion: AskedQuestion | undefined;

  constructor(work: WorkElsewhere, leave: () => void) {
    const { terminal, hasBar, estimateSeconds, elapsedMs, taskId } = work;
    this.#work = work;
    this.#leave = leave;
    this.taskId = taskId;
    this.#bar = hasBar ? new StageView(terminal, { estimateSeconds, elapsedMs }) : undefined;
    this.#lines = new HeldLines((line) => (this.#bar === undefined ? terminal.say(`${line}\n`) : this.#bar.line(line)));
  }

  line(text: string): void {
    this.#lines.line(text);
  }

  /** Where there is a bar, what is being done; each once. */
  announce(text: string): void {
    if (text === this.#announced) return;
    this.#announced = text;
    if (this.#bar !== undefined) this.line(`${this.#work.terminal.colors.cyan("›")} ${clean(text)}`);
  }

  progress(update: ProgressUpdate): void {
    this.#bar?.progress(update);
  }

  /**
   * The person's answer. Undefined when the person leaves the form of a task that can go on without us: nothing is sent,
   * the question stays open, and the work ends here. Work that is no task gets `cancel`.
   */
  async ask(question: AskedQuestion): Promise<Answer | undefined> {
    const answer = await this.lend(() => askInTerminal(question, this.#work.terminal));
    const { isWatching, canDetach } = this.#work;
    const canStayOpen = isWatching === true || (canDetach && this.taskId !== undefined);
    if (answer.action !== "cancel" || !canStayOpen) return answer;
    this.openQuestion = question;
    this.#leave();
    return undefined;
  }

  /** Lets a question have the screen. */
  async lend<T>(ask: () => Promise<T>): Promise<T> {
    return await this.#lines.holdDuring(() => (this.#bar === undefined ? ask() : this.#bar.pause(ask)));
  }

  /** Takes the bar away; what was held back is said. */
  end(): void {
    this.#lines.release();
    this.#bar?.end();
  }
}
