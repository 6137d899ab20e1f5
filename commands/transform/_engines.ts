import path from "node:path";
import { type Limits, Unreadable } from "../_pack/limits.ts";

export const engineNames = ["text", "markdown", "html", "pdf", "docx", "csv", "json", "code"] as const;
export type EngineName = (typeof engineNames)[number];

/** What changes an engine's text, and so is part of the cache's key. */
export interface EngineOptions {
  /** Keep the addresses of links behind their words (html, docx). */
  readonly links: boolean;
}

/** What became of a file. */
export interface Transformed {
  readonly text: string;
  /** Empty when it has none of its own. */
  readonly title: string;
  /** Facts that the engine found: pages, rows, a language. */
  readonly facts: Readonly<Record<string, string | number>>;
}

export interface EngineInput {
  readonly bytes: Uint8Array;
  /** The file's name, for its ending. */
  readonly name: string;
  readonly options: EngineOptions;
  readonly limits: Limits;
}

interface Engine {
  readonly name: EngineName;
  readonly summary: string;
  readonly library: string;
  readonly endings: readonly string[];
  /** Larger when the same file gives another text than before: what was cached then is made anew. */
  readonly version: number;
  /** Which options change its text. */
  readonly options: readonly (keyof EngineOptions)[];
  /** True when the file's ending changes it, too. */
  readonly usesEnding?: true;
  readonly load: () => Promise<(input: EngineInput) => Transformed | Promise<Transformed>>;
}

/** Longer ones are no titles. */
const maxTitle = 1_000;
const maxFact = 10_000;

/** Libraries are loaded when their engine is first used: a start must not wait for them. */
const engines: readonly Engine[] = [
  {
    name: "text",
    summary: "Plain text as it is: UTF-8, UTF-16 or Windows-1252, line ends made equal",
    library: "none",
    endings: ["txt", "text", "log", "rst", "org", "adoc", "tex", "srt", "vtt", "ini", "conf", "cfg", "properties"],
    version: 1,
    options: [],
    load: async () => (await import("./_plain.ts")).toText,
  },
  {
    name: "markdown",
    summary: "Markdown as it is, without its front matter and comments; the title comes from either",
    library: "yaml",
    endings: ["md", "markdown", "mdx"],
    version: 1,
    options: [],
    load: async () => (await import("./_markdown.ts")).fromMarkdown,
  },
  {
    name: "html",
    summary: "What a reader sees of a page, with # headings, - lists and | tables; no scripts, no styles",
    library: "htmlparser2",
    endings: ["html", "htm", "xhtml"],
    version: 1,
    options: ["links"],
    load: async () => (await import("./_html.ts")).fromHtml,
  },
  {
    name: "pdf",
    summary: "The text of a PDF, page by page; scanned pages have none",
    library: "unpdf",
    endings: ["pdf"],
    version: 1,
    options: [],
    load: async () => (await import("./_pdf.ts")).fromPdf,
  },
  {
    name: "docx",
    summary: "The text of a Word document, with # headings, - lists and | tables",
    library: "htmlparser2",
    endings: ["docx"],
    version: 1,
    options: ["links"],
    load: async () => (await import("./_docx.ts")).fromDocx,
  },
  {
    name: "csv",
    summary: "Each record on a line, every value with its column's name; comma, semicolon or tab",
    library: "none",
    endings: ["csv", "tsv"],
    version: 2,
    options: [],
    load: async () => (await import("./_csv.ts")).fromCsv,
  },
  {
    name: "json",
    summary: "Each value on a line with the path that leads to it; JSON, and JSON Lines",
    library: "none",
    endings: ["json", "jsonl", "ndjson", "geojson", "ipynb"],
    version: 2,
    options: [],
    usesEnding: true,
    load: async () => (await import("./_json.ts")).fromJson,
  },
  {
    name: "code",
    summary: "Source code as it is, with its language and its number of lines",
    library: "none",
    endings:
      "ts tsx mts cts js jsx mjs cjs py pyi rb go rs java kt kts scala swift c h cc cpp cxx hpp cs php pl lua r jl sh bash zsh fish ps1 sql css scss less vue svelte yaml yml toml xml graphql proto tf erl ex exs hs ml clj dart zig nix".split(
        " ",
      ),
    version: 1,
    options: [],
    usesEnding: true,
    load: async () => (await import("./_plain.ts")).toCode,
  },
];

/** Names without an ending that say what they are. */
const wholeNames: Readonly<Record<string, EngineName>> = {
  readme: "text",
  license: "text",
  changelog: "text",
  makefile: "code",
  dockerfile: "code",
};

const byName = new Map(engines.map((engine) => [engine.name, engine]));
const byEnding = new Map(engines.flatMap((engine) => engine.endings.map((ending) => [ending, engine.name])));

export function describeEngines(): Omit<Engine, "load">[] {
  return engines.map(({ load: _load, ...described }) => described);
}

/** The engine for a file of this name; undefined when none knows its ending. */
export function engineFor(name: string): EngineName | undefined {
  const ending = path.extname(name).slice(1).toLowerCase();
  return ending === "" ? wholeNames[path.basename(name).toLowerCase()] : byEnding.get(ending);
}

/**
 * What beside a file's content makes the text: the engine, its version, and what matters to it of the options and the
 * file's name.
 */
export function engineKey(name: EngineName, options: EngineOptions, fileName: string): string {
  const engine = engineOf(name);
  const used = engine.options.map((option) => [option, options[option]]);
  const ending = engine.usesEnding === true ? path.extname(fileName).toLowerCase() : "";
  return JSON.stringify([name, engine.version, Object.fromEntries(used), ending]);
}

/**
 * Turns a file's bytes into text, in the process that reads documents. What the engine cannot read is an `Unreadable`.
 */
export async function transformBytes(name: EngineName, input: EngineInput): Promise<Transformed> {
  const act = await engineOf(name).load();
  try {
    const { text, title, facts } = await act(input);
    return {
      text,
      title: title.slice(0, maxTitle),
      facts: Object.fromEntries(
        Object.entries(facts).map(([name, fact]) => [name, typeof fact === "string" ? fact.slice(0, maxFact) : fact]),
      ),
    };
  } catch (error) {
    if (error instanceof Unreadable) throw error;
    // Some libraries end their sentences, others do not; who tells it sets the full stop.
    const reason = (error instanceof Error ? error.message : String(error)).replace(/[.\s]+$/, "");
    throw new Unreadable(`it could not be read as ${name}: ${reason}`, { cause: error });
  }
}

function engineOf(name: EngineName): Engine {
  const engine = byName.get(name);
  if (engine === undefined) throw new Unreadable(`there is no engine ${name}; known: ${engineNames.join(", ")}`);
  return engine;
}
