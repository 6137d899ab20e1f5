import { isDeepStrictEqual } from "node:util";
import type { CatalogEntry, LoadProblem } from "../command/catalog.ts";
import { defineCommand } from "../command/command.ts";
import { type Relay, toForeignCommand } from "../command/foreign.ts";
import type { CommandSource } from "../command/source.ts";
import type { Logger } from "../log.ts";
import { isObject, type Json, textOf } from "../wire/json.ts";
import { isModern } from "../wire/revisions.ts";
import type { ToolChoice } from "./served-tools.ts";
import type { Upstream } from "./upstream.ts";
import { type CalledUpstream, type CallLine, UpstreamCall } from "./upstream-call.ts";
import type { KnownUpstream } from "./upstream-memory.ts";

interface UpstreamToolsOptions {
  readonly upstream: Upstream;
  readonly choice: ToolChoice;
  /** What a tool is called here; undefined where another has its name. */
  readonly publicName: (tool: string) => string | undefined;
  /** What a person types for it. */
  readonly pathOf: (tool: string, publicName: string) => readonly string[];
  /** Names that are taken by tools of ours. */
  readonly taken: readonly string[];
  /** The call with what is known of its client's folders. */
  readonly withRoots: (relay: Relay) => Relay;
  readonly lineFor: (tool: Json, relay: Relay) => CallLine;
  readonly onResult: (result: Json) => void;
  readonly log: Logger;
}

/** The tools of an upstream, as commands: durable like all others. One that is down keeps those that are known. */
export class UpstreamTools implements CommandSource {
  readonly isUpstream = true;
  readonly #options: UpstreamToolsOptions;
  readonly #listeners = new Set<() => void>();
  readonly #stopListening: () => void;
  #known = new Map<string, { readonly listing: Json; readonly entry: CatalogEntry }>();
  #told = new Set<string>();
  #trouble: string | undefined;
  entries: readonly CatalogEntry[] = [];
  problems: readonly LoadProblem[] = [];

  constructor(options: UpstreamToolsOptions) {
    this.#options = options;
    this.#take();
    this.#stopListening = options.upstream.onChange(() => this.refresh());
  }

  /** Takes its tools, and their names, as they are now. */
  refresh(): void {
    const { entries, problems } = this;
    const before = this.#trouble;
    this.#take();
    // One that is opened again and says the same is no news. Its entries are the same ones as long as that is so.
    const isSame =
      before === this.#trouble &&
      isDeepStrictEqual(problems, this.problems) &&
      entries.length === this.entries.length &&
      entries.every((entry, at) => entry === this.entries[at]);
    if (!isSame) for (const listener of this.#listeners) listener();
  }

  get name(): string {
    return `the upstream ${this.#options.upstream.name}`;
  }

  get trouble(): string | undefined {
    return this.#options.upstream.toolTrouble;
  }

  get(toolName: string): CatalogEntry | undefined {
    return this.entries.find((entry) => entry.toolName === toolName);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#stopListening();
    this.#listeners.clear();
  }

  /** All that it lists to anybody: who is not listed a tool may still call it. */
  #take(): void {
    const { upstream, choice, taken, publicName } = this.#options;
    const known = new Map<string, { listing: Json; entry: CatalogEntry }>();
    const problems = new Map<string, LoadProblem>();
    for (const { listing, isModern } of upstream.memory.all.flatMap(toListed)) {
      const name = textOf(listing.name) ?? "";
      if (!choice.isServed(name)) continue;
      const toolName = name === "" ? undefined : publicName(name);
      // Ours lead to the results of our tasks, its own to those that it has made for us.
      if (toolName !== undefined && taken.includes(toolName)) continue;
      const problem = this.#problemOf(toolName, listing);
      if (name === "") {
        const text = `The upstream ${upstream.name}: a tool has no name and is left out.`;
        problems.set("", { file: this.name, text });
        this.#tell(text);
      } else if (problem === undefined)
        known.set(name, this.#entryFor(name, toolName as string, { listing, isModern }));
      else {
        // No tool is called `<upstream>/<name>`, so that this name takes none away.
        const problemName = toolName ?? `${upstream.name}/${name}`;
        problems.set(problemName, { toolName: problemName, file: this.name, text: problem });
        this.#tell(`${name} of ${this.name} is not served: ${problem}`);
      }
    }
    this.#known = known;
    this.#trouble = upstream.toolTrouble;
    // One list may have a valid and a broken tool of the same name, and so may the lists for two kinds of clients.
    const served = new Set([...known.values()].map(({ entry }) => entry.toolName));
    this.problems = [...problems.values()].filter(({ toolName = "" }) => !served.has(toolName));
    this.entries = [...known.values()].map(({ entry }) => entry);
  }

  #tell(sentence: string): void {
    if (this.#told.has(sentence)) return;
    this.#told.add(sentence);
    this.#options.log.warn(sentence);
  }

  #problemOf(toolName: string | undefined, { inputSchema }: Json): string | undefined {
    if (toolName === undefined)
      return "another tool here has its name; let the prefix be `collision` or `always` (--prefix, or `upstreamPrefix` in the config)";
    if (!isObject(inputSchema)) return "its inputSchema is no JSON Schema, and clients would refuse the whole list";
    return undefined;
  }

  /** The very same as long as its upstream says the same of it. */
  #entryFor(name: string, toolName: string, listed: Listed): { listing: Json; entry: CatalogEntry } {
    const { listing } = listed;
    const known = this.#known.get(name);
    const isSame = known?.listing === listing && known.entry.toolName === toolName;
    return isSame ? known : { listing, entry: this.#toEntry(name, toolName, listed) };
  }

  #toEntry(name: string, toolName: string, { listing, isModern }: Listed): CatalogEntry {
    const { upstream, choice, lineFor, withRoots, pathOf, onResult } = this.#options;
    const support = (listing.execution as Json | undefined)?.taskSupport;
    const { timeLimitSeconds } = upstream.config;
    const options = {
      long: choice.isLong(name) || support === "required",
      ...(choice.mayRerun(name) && { rerun: true }),
      // It answers with its questions, and nothing of it runs before they are answered.
      asksFirst: isModern,
      ...(timeLimitSeconds !== undefined && { timeout: timeLimitSeconds }),
    };
    const explain: CalledUpstream["explain"] = (caller, ...said) => upstream.explain(caller, ...said);
    const called = (isSafe: boolean) => ({ upstream: upstream.name, listing, isSafe, explain });
    let isSafe = false;
    const tool = {
      listing,
      saysWhenSafe: true,
      call: async (input: unknown, relay: Relay) => {
        const result = await new UpstreamCall(
          called(isSafe),
          input,
          withRoots(relay),
          lineFor(listing, relay),
        ).answer();
        onResult(result);
        return result;
      },
    };
    const command = toForeignCommand(tool, options, defineCommand);
    isSafe = command.effects === "read" || command.idempotent;
    return { toolName, path: pathOf(name, toolName), file: "", command, isListedByServer: true };
  }
}

interface Listed {
  readonly listing: Json;
  readonly isModern: boolean;
}

function toListed({ hello, lists }: KnownUpstream): Listed[] {
  return lists.tools.map((listing) => ({ listing, isModern: isModern(hello.revision) }));
}
