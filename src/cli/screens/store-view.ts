import { formatDuration, toTimestamp } from "../../clock.ts";
import { clean, type Terminal } from "../terminal.ts";

/** What is shown of a store; who looks at it says more. */
interface ShownStore {
  readonly kind: string;
  readonly place: string;
  readonly version: string;
  readonly schema: { readonly version: number; readonly known: number };
  readonly tasks:
    | {
        readonly live: number;
        readonly ended: number;
        readonly steps: number;
        readonly oldestAt: number | null;
        readonly newestAt: number | null;
      }
    | undefined;
  readonly bytes: number;
  readonly connections: { readonly used: number; readonly allowed: number; readonly nodeNeeds: number } | undefined;
  readonly clockAheadMs: number;
  readonly problems: readonly string[];
}

/** One screen: where it is, what is in it, and what is wrong with it. */
export function storeView(store: ShownStore, { colors }: Pick<Terminal, "colors">): string {
  const { bold, dim, green, red } = colors;
  const { tasks, schema } = store;
  const rows = [
    ["version", store.version],
    [
      "schema",
      `${schema.version}, ${schema.version === schema.known ? "as" : `not ${schema.known} as`} this program has it`,
    ],
    ...(tasks === undefined ? [] : [["tasks", `${tasks.live} live, ${tasks.ended} ended, ${tasks.steps} steps kept`]]),
    ...stamps("oldest", tasks?.oldestAt),
    ...stamps("newest", tasks?.newestAt),
    ["size", toSize(store.bytes)],
    ...(store.connections === undefined ? [] : [["connections", toConnections(store.connections)]]),
    ["clock", toClock(store)],
  ];
  const lines = rows.map(([name = "", text = ""]) => `  ${dim(name.padEnd(13))}${clean(text)}\n`);
  const end =
    store.problems.length === 0
      ? `${green("✓")} Nothing is wrong with it.\n`
      : store.problems.map((problem) => `${red("✗")} ${clean(problem)}\n`).join("");
  return `${bold(clean(`${store.kind} ${store.place}`))}\n${lines.join("")}${end}`;
}

function stamps(name: string, at: number | null | undefined): string[][] {
  return typeof at === "number" ? [[name, toTimestamp(at)]] : [];
}

function toSize(bytes: number): string {
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(0)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

function toConnections({ used, allowed, nodeNeeds }: NonNullable<ShownStore["connections"]>): string {
  return `${used} of ${allowed} in use; a node opens up to ${nodeNeeds}`;
}

function toClock({ clockAheadMs, connections }: ShownStore): string {
  if (connections === undefined) return "this machine's";
  if (clockAheadMs === 0) return "the same as this machine's";
  return `${formatDuration(Math.abs(clockAheadMs))} ${clockAheadMs > 0 ? "ahead of" : "behind"} this machine's`;
}
