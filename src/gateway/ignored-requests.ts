import { type Clock, within } from "../clock.ts";
import type { Id } from "../wire/in-flight.ts";
import { fieldsOf, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";

/** A server that goes on with what was taken back for so long is ended, if it does nothing else. */
const ignoreMs = 10_000;
/** One that hangs answers nothing any more. */
const answerMs = 5_000;
/** Who obeys need not answer, so that what is remembered for the case has to end. */
const maxOpen = 1_000;

interface IgnoredWays {
  readonly clock: Clock;
  /** Nobody needs it for anything else. */
  isIdle(): boolean;
  isOver(): boolean;
  /** Settles when it answers, whatever that is. */
  ping(): Promise<unknown>;
  end(): void;
  cancelTask(taskId: string): void;
}

interface Ignored {
  readonly mayEnd: boolean;
  /** Something has been heard of it since. */
  goesOn: boolean;
  isWatched: boolean;
}

/**
 * Requests that were taken back and that a server has not answered: one that does not stop works for nobody. Who obeys
 * does not answer either; that a server goes on is known only by what it still says of the request, or by its silence
 * on everything.
 */
export class IgnoredRequests {
  readonly #ways: IgnoredWays;
  readonly #open = new Map<Id, Ignored>();

  constructor(ways: IgnoredWays) {
    this.#ways = ways;
  }

  /** `mayEnd`: the server can be ended. */
  add(id: Id, mayEnd: boolean): void {
    this.#open.set(id, { mayEnd, goesOn: false, isWatched: false });
    const [oldest] = this.#open.keys();
    if (this.#open.size > maxOpen) this.#open.delete(oldest as Id);
    this.#watch(id);
  }

  /** It says something of a request, perhaps of one that was taken back. */
  heardOf(id: Id): void {
    const request = this.#open.get(id);
    if (request === undefined) return;
    request.goesOn = true;
    this.#watch(id);
  }

  /** What is answered after all is for nobody; but where it has become a task by then, that would go on. */
  answered({ id, result }: Message): void {
    if (!this.#open.delete(id as Id)) return;
    const { resultType, taskId, task } = fieldsOf(result);
    const begun = textOf(resultType === "task" ? taskId : fieldsOf(task).taskId);
    if (begun !== undefined) this.#ways.cancelTask(begun);
  }

  #watch(id: Id): void {
    const request = this.#open.get(id);
    if (request?.mayEnd !== true || request.isWatched) return;
    request.isWatched = true;
    this.#ways.clock.after(ignoreMs, () => {
      request.isWatched = false;
      if (this.#open.has(id) && !this.#ways.isOver()) void this.#look(id, request.goesOn);
    });
  }

  /** Where others need it, it may go on. */
  async #look(id: Id, goesOn: boolean): Promise<void> {
    const { clock, isIdle, isOver, ping, end } = this.#ways;
    if (!isIdle()) return this.#watch(id);
    if (!goesOn && (await within(clock, answerMs, ping().then(yes, yes), no))) return;
    if (isOver()) return;
    if (isIdle()) end();
    else this.#watch(id);
  }
}

const yes = () => true;
const no = () => false;
