import type { Logger } from "../log.ts";
import type { ClientConnection } from "../mcp/request.ts";
import { cut } from "../wire/peer-errors.ts";
import { proxyNotice } from "../wire/request-envelope.ts";
import type { Upstream } from "./upstream.ts";

interface NoticesOptions {
  readonly upstreams: readonly Upstream[];
  /** Upstreams that are named and not served, each with the reason. */
  readonly leftOut: Readonly<Record<string, string>>;
  /** The left out ones of `wrap` were reported on stderr when their file was read. */
  readonly isWrap: boolean;
  readonly log: Logger;
}

/** A notice in the instructions is no longer than this: the log has all of it. */
const maxLength = 300;

/** The upstreams that cannot be used, in sentences: for the instructions of clients, and for the stderr of the proxy. */
export class UpstreamNotices {
  readonly #options: NoticesOptions;

  constructor(options: NoticesOptions) {
    this.#options = options;
    for (const sentence of this.#reported) options.log.warn(sentence);
  }

  /** These instructions, with the upstreams that cannot be used now on top. Undefined where there is nothing to say. */
  under(instructions: string | undefined): string | undefined {
    const { upstreams, leftOut } = this.#options;
    const notices = [
      ...upstreams.flatMap(({ trouble, delay }) => (trouble === undefined ? (delay ?? []) : withoutPrinted(trouble))),
      ...Object.entries(leftOut).map(([name, why]) => describeLeftOut(name, why)),
    ];
    if (notices.length === 0) return instructions;
    const all = notices.map((notice) => cut(notice, maxLength)).join("\n");
    return instructions === undefined || instructions === "" ? all : `${all}\n\n${instructions}`;
  }

  /** Sends them to a stdio proxy, which prints them on its stderr; until called off. */
  sendTo(connection: ClientConnection): () => void {
    const { upstreams } = this.#options;
    const sent = new Set<string>();
    const send = (text: string) => {
      if (sent.has(text)) return;
      sent.add(text);
      connection.notify(proxyNotice, { text });
    };
    const look = () => {
      for (const { trouble, delay, isSlow } of upstreams) {
        const notice = trouble ?? (isSlow ? delay : undefined);
        if (notice !== undefined) send(notice);
      }
    };
    // The connection is still being made.
    queueMicrotask(() => {
      for (const sentence of this.#reported) send(sentence);
      look();
    });
    const stops = upstreams.map((upstream) => upstream.onChange(look));
    return () => {
      for (const stop of stops) stop();
    };
  }

  get #reported(): readonly string[] {
    const { leftOut, isWrap } = this.#options;
    return isWrap ? [] : Object.entries(leftOut).map(([name, why]) => describeLeftOut(name, why));
  }
}

/** What the server of one session printed at its end is not for the clients of others. */
function withoutPrinted(trouble: string): string {
  return trouble.replace(/; it printed «.*»/s, "");
}

function describeLeftOut(name: string, why: string): string {
  return `The upstream ${name} is not served: ${why}.`;
}
