import type { Terminal } from "../terminal.ts";
import { clean } from "../terminal.ts";
import { toColumns } from "./layout.ts";

interface ShownUpstream {
  readonly name: string;
  readonly target: string;
  readonly state: "idle" | "starting" | "open" | "down";
  readonly trouble?: string;
  readonly connections: number;
  readonly calls: number;
  readonly tools: number;
  readonly era?: string;
  readonly isThisProject: boolean;
  readonly isWrapped: boolean;
  readonly daemon?: { readonly pid: number };
}

/** Upstreams in columns; what is wrong with one stands below it. */
export function upstreamsTable(upstreams: readonly ShownUpstream[], colors: Terminal["colors"], width: number): string {
  const heads = ["Upstream", "State", "Tools", "Calls", "Speaks", "Daemon", "Server"];
  const rows = upstreams.map((one) => [
    clean(one.name),
    stateOf(one),
    one.tools === 0 ? "–" : String(one.tools),
    String(one.calls),
    clean(one.era ?? "–"),
    one.daemon === undefined ? "–" : String(one.daemon.pid),
    `${clean(one.target)}${one.isWrapped ? " (wrapped)" : ""}`,
  ]);
  const [head = "", ...lines] = toColumns([heads, ...rows], width)
    .trimEnd()
    .split("\n");
  const marked = lines.map((line) => {
    const state = upstreams.find(({ name }) => line.startsWith(`${clean(name)} `))?.state;
    return state === "down" ? colors.red(line) : state === "open" ? colors.green(line) : line;
  });
  const troubles = upstreams.flatMap(({ name, trouble }) =>
    trouble === undefined ? [] : [`${colors.red("✗")} ${clean(sentenceOn(name, trouble))}\n`],
  );
  return `${colors.dim(head)}\n${marked.join("\n")}\n${troubles.join("")}`;
}

/** How many have it open, where they are several. */
function stateOf({ state, connections }: ShownUpstream): string {
  return connections > 1 ? `${state} ×${connections}` : state;
}

/** Most of them name it. */
function sentenceOn(name: string, trouble: string): string {
  return trouble.startsWith(`The upstream ${name}`) ? trouble : `${name}: ${trouble}`;
}
