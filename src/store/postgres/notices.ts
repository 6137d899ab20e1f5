import { type Clock, nextTurn, sleep } from "../../clock.ts";

/** At most one in this time: a notice costs more than the write it tells of. */
const pauseMs = 4;
/** PostgreSQL takes up to 8,000 bytes. */
const maxBytes = 7_000;

/** What one node tells the others: which tasks have changed, and whether there may be work. */
export interface Notice {
  readonly node: string;
  /** Undefined: too many to name. */
  readonly taskIds: readonly string[] | undefined;
  readonly isWork: boolean;
}

/** Gathers what there is to tell, and sends it right after. */
export class Notices {
  readonly #node: string;
  readonly #clock: Clock;
  readonly #send: (payload: string) => Promise<unknown>;
  #changed = new Set<string>();
  #isWork = false;
  #sending: Promise<void> | undefined;

  constructor(node: string, clock: Clock, send: (payload: string) => Promise<unknown>) {
    this.#node = node;
    this.#clock = clock;
    this.#send = send;
  }

  add(taskId: string, isWork: boolean): void {
    this.#changed.add(taskId);
    this.#isWork ||= isWork;
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined));
  }

  /** Resolves when nothing is left to tell. */
  async flush(): Promise<void> {
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    await nextTurn();
    while (this.#changed.size > 0) {
      const payload = toPayload({ node: this.#node, taskIds: [...this.#changed], isWork: this.#isWork });
      this.#changed = new Set();
      this.#isWork = false;
      // One that is lost is made up for by looking.
      await this.#send(payload).catch(() => undefined);
      await sleep(this.#clock, pauseMs);
    }
  }
}

function toPayload(notice: Notice): string {
  const payload = JSON.stringify(notice);
  return Buffer.byteLength(payload) > maxBytes ? JSON.stringify({ ...notice, taskIds: undefined }) : payload;
}

/** Undefined for what is none of ours. */
export function fromPayload(payload: string): Notice | undefined {
  try {
    const { node, taskIds, isWork } = JSON.parse(payload) as Partial<Notice>;
    return typeof node === "string" ? { node, taskIds, isWork: isWork === true } : undefined;
  } catch {
    return undefined;
  }
}
