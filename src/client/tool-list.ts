import { isObject, textOf } from "../wire/json.ts";
import { ConnectionError } from "../wire/peer-errors.ts";
import type { Tool } from "./client.ts";
import { orAborted } from "./connection/or-aborted.ts";
import { answerMs, type ServerConnection } from "./connection/server-connection.ts";

const maxPages = 100;
const maxTools = 20_000;

/** The server's tools, listed when they are first needed and again when they have changed. */
export class ToolList {
  readonly #connection: ServerConnection;
  #tools: Promise<readonly Tool[]> | undefined;
  #known: readonly Tool[] | undefined;

  constructor(connection: ServerConnection) {
    this.#connection = connection;
    connection.on("notifications/tools/list_changed", () => this.forget());
  }

  forget(): void {
    this.#tools = undefined;
    this.#known = undefined;
  }

  async list(signal?: AbortSignal): Promise<readonly Tool[]> {
    if (this.#known !== undefined) return this.#known;
    // Others may wait for it too, so one who gives up leaves it to them.
    this.#tools ??= this.#listOnce();
    return await orAborted(this.#tools, signal);
  }

  /** Without asking the server. */
  known(name: string): Tool | undefined {
    return this.#known?.find((tool) => tool.name === name);
  }

  async find(name: string, signal?: AbortSignal): Promise<Tool | undefined> {
    return (await this.list(signal)).find((tool) => tool.name === name);
  }

  #listOnce(): Promise<readonly Tool[]> {
    const listing = this.#fetch();
    // A list that was forgotten while it came is out of date already.
    const keep = (tools: readonly Tool[] | undefined) => {
      if (this.#tools !== listing) return;
      this.#known = tools;
      this.#tools = undefined;
    };
    listing.then(keep, () => keep(undefined));
    return listing;
  }

  async #fetch(): Promise<readonly Tool[]> {
    const tools: Tool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < maxPages && tools.length < maxTools; page++) {
      const result = await this.#connection.request("tools/list", cursor === undefined ? {} : { cursor }, {
        isRepeatable: true,
        limitMs: answerMs,
      });
      for (const tool of Array.isArray(result.tools) ? result.tools : []) {
        if (isObject(tool) && typeof tool.name === "string")
          tools.push({ ...tool, inputSchema: isObject(tool.inputSchema) ? tool.inputSchema : {} } as unknown as Tool);
      }
      cursor = textOf(result.nextCursor);
      if (cursor === undefined) return tools;
    }
    throw new ConnectionError(`The server's list of tools does not end: ${tools.length} tools on ${maxPages} pages.`, {
      isPassing: false,
    });
  }
}

/** The name that is most like a mistyped one; undefined when none is near. */
export function closest(name: string, known: readonly string[]): string | undefined {
  const scored = known.map((other) => ({ other, score: likeness(name.toLowerCase(), other.toLowerCase()) }));
  const best = scored.reduce((top, next) => (next.score > top.score ? next : top), { other: "", score: 0 });
  return best.score >= 0.5 ? best.other : undefined;
}

/** From 0 to 1: the letters that two words share, whatever their order, and the pairs of neighbours, which have one. */
function likeness(a: string, b: string): number {
  const pairs = (word: string) =>
    Array.from({ length: Math.max(0, word.length - 1) }, (_, at) => word.slice(at, at + 2));
  return (overlap(a.split(""), b.split("")) + overlap(pairs(a), pairs(b))) / 2;
}

function overlap(some: readonly string[], others: readonly string[]): number {
  const left = [...others];
  let shared = 0;
  for (const item of some) {
    const at = left.indexOf(item);
    if (at === -1) continue;
    left.splice(at, 1);
    shared++;
  }
  return some.length + others.length === 0 ? 0 : (2 * shared) / (some.length + others.length);
}
