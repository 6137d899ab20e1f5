import type { Caller } from "../command/caller.ts";
import type { Logger } from "../log.ts";
import type { ClientConnection } from "../mcp/request.ts";
import { cut } from "../wire/peer-errors.ts";
import { proxyNotice } from "../wire/request-envelope.ts";
import { describeRefusal, type Upstream } from "./upstream.ts";
import { describeUnusable, seesReasons } from "./upstream-down.ts";

interface NoticesOptions {
  readonly upstreams: readonly Upstream[];
  /** Upstreams that are named and not served, each with the reason. */
  readonly leftOut: Readonly<Record<string, string>>;
  /** The left out ones of `wrap` were reported on stderr when their file was read. */
  readonly isWrap: boolean;
  /** Of a list that it refuses the clients of a single upstream get its own error. */
  readonly isVerbatim: boolean;
  readonly log: Logger;
}

/** What is wrong with one upstream. */
interface Notice {
  readonly upstream: string;
  /** `unlisted before`: as an earlier process has found. The reason is known when the upstream is started. */
  readonly state: "down" | "starting" | "unlisted" | "unlisted before" | "left out";
  /** With the reason, for the local user. */
  readonly text: string;
  /** Without the reason, for other callers. */
  readonly withoutReason: string;
}

/** A notice in the instructions is no longer than this: the log has all of it. */
const maxLength = 300;

/** The upstreams that cannot be used, in sentences: for the instructions of clients, and for the stderr of the proxy. */
export class UpstreamNotices {
  readonly #options: NoticesOptions;

  constructor(options: NoticesOptions) {
    this.#options = options;
    for (const { text } of this.#reported) options.log.warn(text);
  }

  /** These instructions, with the upstreams that cannot be used now on top. Undefined where there is nothing to say. */
  under(instructions: string | undefined, caller: Caller): string | undefined {
    const { upstreams } = this.#options;
    const notices = [...upstreams.flatMap((upstream) => this.#noticeOn(upstream) ?? []), ...this.#leftOut];
    if (notices.length === 0) return instructions;
    const isWhole = seesReasons(caller);
    const all = notices
      .map(({ text, withoutReason }) => cut(isWhole ? withoutPrinted(text) : withoutReason, maxLength))
      .join("\n");
    return instructions === undefined || instructions === "" ? all : `${all}\n\n${instructions}`;
  }

  /**
   * Sends them to a stdio proxy, which prints them on its stderr; until called off. Each upstream is named once for each
   * state, whatever the words: those of an error may differ at every start.
   */
  sendTo(connection: ClientConnection): () => void {
    const { upstreams } = this.#options;
    const sent = new Set<string>();
    const send = ({ upstream, state, text }: Notice) => {
      const key = `${state} ${upstream}`;
      if (sent.has(key)) return;
      sent.add(key);
      connection.notify(proxyNotice, { text });
    };
    const look = () => {
      for (const upstream of upstreams) {
        const notice = this.#noticeOn(upstream);
        const isEarly = notice?.state === "unlisted before" || (notice?.state === "starting" && !upstream.isSlow);
        if (notice !== undefined && !isEarly) send(notice);
      }
    };
    // The connection is still being made.
    queueMicrotask(() => {
      for (const notice of this.#reported) send(notice);
      look();
    });
    const stops = upstreams.map((upstream) => upstream.onChange(look));
    return () => {
      for (const stop of stops) stop();
    };
  }

  #noticeOn({ name, trouble, delay, refusal }: Upstream): Notice | undefined {
    if (trouble !== undefined)
      return { upstream: name, state: "down", text: trouble, withoutReason: describeUnusable(name) };
    if (delay !== undefined) return { upstream: name, state: "starting", text: delay, withoutReason: delay };
    if (refusal === undefined || this.#options.isVerbatim) return undefined;
    const withoutReason = `${refusal.sentence}.`;
    const state = refusal.reason === undefined ? "unlisted before" : "unlisted";
    return { upstream: name, state, text: describeRefusal(refusal), withoutReason };
  }

  get #leftOut(): readonly Notice[] {
    return Object.entries(this.#options.leftOut).map(([name, why]) => ({
      upstream: name,
      state: "left out",
      text: `The upstream ${name} is not served: ${why}.`,
      withoutReason: `The upstream ${name} is not served.`,
    }));
  }

  get #reported(): readonly Notice[] {
    return this.#options.isWrap ? [] : this.#leftOut;
  }
}

/** What the server of one session printed at its end is not for the clients of others. */
function withoutPrinted(trouble: string): string {
  return trouble.replace(/; it printed «.*»/s, "");
}
