import type { CatalogEntry, LoadProblem } from "../command/catalog.ts";
import { defineCommand } from "../command/command.ts";
import { type ForeignToolOptions, toForeignCommand } from "../command/foreign.ts";
import type { CommandSource } from "../command/source.ts";
import { messageOf } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Json } from "../wire/json.ts";
import type { Guest } from "./guest.ts";
import { callGuestTool } from "./guest-calls.ts";
import type { GuestEra } from "./guest-host.ts";
import type { Guests } from "./guests.ts";

interface GuestToolsOptions {
  /** What is said of single tools, by name. */
  readonly tools?: Readonly<Record<string, ForeignToolOptions>>;
  /** Names that are taken by tools of ours. */
  readonly taken?: readonly string[];
  readonly log: Logger;
}

/** The tools of a guest, as commands: durable like all others. */
export class GuestTools implements CommandSource {
  readonly #guests: Guests;
  readonly #options: GuestToolsOptions;
  readonly #listeners = new Set<() => void>();
  readonly #entries = new Map<string, CatalogEntry>();
  #followed: Guest | undefined;
  entries: readonly CatalogEntry[] = [];
  problems: readonly LoadProblem[] = [];
  trouble: string | undefined;

  constructor(guests: Guests, options: GuestToolsOptions) {
    this.#guests = guests;
    this.#options = options;
  }

  get name(): string {
    return this.#guests.name;
  }

  /** Has the guest say what tools it has. One that cannot be made is in trouble, and asked again by whoever needs it. */
  async open(era: GuestEra = "modern"): Promise<void> {
    this.#guests.onShared((guest) => this.#follow(guest));
    try {
      this.#follow(await this.#guests.shared(era));
    } catch (error) {
      this.trouble = messageOf(error);
    }
  }

  /** It is in trouble until it says what tools it has. */
  fail(text: string): void {
    this.trouble = text;
    this.#options.log.error(`${this.name}: ${text}`);
  }

  get(toolName: string): CatalogEntry | undefined {
    return this.#entries.get(toolName);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#listeners.clear();
  }

  /** Of several, as one of each era, the first one's tools are those that are served. */
  #follow(guest: Guest): void {
    if (this.#followed?.isClosed === false) return;
    this.#followed = guest;
    this.trouble = undefined;
    guest.onTools(() => this.#take(guest.tools));
    this.#take(guest.tools);
  }

  #take(tools: ReadonlyMap<string, Json>): void {
    for (const name of Object.keys(this.#options.tools ?? {}))
      if (!tools.has(name)) this.#options.log.warn(`the option tools.${name} is for a tool that ${this.name} has not`);
    this.#entries.clear();
    const taken = (this.#options.taken ?? []).filter((name) => tools.has(name));
    for (const [name, listing] of tools)
      if (!taken.includes(name)) this.#entries.set(name, this.#toEntry(name, listing));
    this.problems = taken.map((toolName) => ({ toolName, file: this.name, text: isTaken(toolName) }));
    for (const { toolName, text } of this.problems)
      this.#options.log.error(`${toolName} of ${this.name} is not served: ${text}`);
    this.entries = [...this.#entries.values()];
    for (const listener of this.#listeners) listener();
  }

  #toEntry(toolName: string, listing: Json): CatalogEntry {
    const tool = {
      listing,
      call: (input: unknown, relay: Parameters<typeof callGuestTool>[3]) =>
        callGuestTool(this.#guests, listing, input, relay),
    };
    const command = toForeignCommand(tool, this.#options.tools?.[toolName] ?? {}, defineCommand);
    return { toolName, path: [toolName], file: "", command, isListedByServer: true };
  }
}

function isTaken(name: string): string {
  return `clients without tasks call ${name} to get their results; rename it, or switch those tools off: followUpTools: false`;
}
