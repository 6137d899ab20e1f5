import type { StreamMark } from "../client/connection/http-link.ts";
import type { Id } from "../wire/in-flight.ts";
import { fieldsOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";

/** More of a server's questions wait for our answers than anybody has asked for in earnest. */
const maxAsked = 1_000;

/**
 * Questions of a server's that wait for our answers: in which session each was asked, and from where its stream can be
 * taken up. That is before the oldest of them, because one that was heard before a crash must be heard again.
 */
export class OpenQuestions<Place> {
  readonly #asked = new Map<Id, { readonly place: Place; readonly about: Id | undefined }>();
  readonly #held = new Map<Id, StreamMark>();
  readonly #onMark: (about: Id, mark: StreamMark) => void;

  constructor(onMark: (about: Id, mark: StreamMark) => void) {
    this.#onMark = onMark;
  }

  /** A message has come in this place, on the stream of this request. */
  heard({ id, method, params }: Message, about: Id | undefined, place: Place): void {
    if (method === "notifications/cancelled") this.settle(fieldsOf(params).requestId as Id);
    if (method === undefined || id == null) return;
    this.#asked.set(id, { place, about });
    const [oldest] = this.#asked.keys();
    if (this.#asked.size > maxAsked && oldest !== undefined) this.settle(oldest);
  }

  placeOf(id: Id): Place | undefined {
    return this.#asked.get(id)?.place;
  }

  /** The stream of a request can be taken up from here, once nothing that came before waits for us. */
  marked(about: Id, mark: StreamMark): void {
    if (this.#isOpen(about)) this.#held.set(about, mark);
    else this.#onMark(about, mark);
  }

  /** A question was answered, or taken back. */
  settle(id: Id): void {
    const about = this.#asked.get(id)?.about;
    this.#asked.delete(id);
    if (about === undefined || this.#isOpen(about)) return;
    const mark = this.#held.get(about);
    this.#held.delete(about);
    if (mark !== undefined) this.#onMark(about, mark);
  }

  /** A request of ours is over, and with it what was asked on its stream. */
  end(about: Id): void {
    this.#held.delete(about);
    for (const [id, question] of this.#asked) if (question.about === about) this.#asked.delete(id);
  }

  #isOpen(about: Id): boolean {
    return [...this.#asked.values()].some((question) => question.about === about);
  }
}
