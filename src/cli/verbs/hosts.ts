import { systemClock, toTimestamp } from "../../clock.ts";
import { CommandError, Exit } from "../../errors.ts";
import { toSeconds } from "../../host/budget.ts";
import type { Transport } from "../../host/learned-limits.ts";
import { findHost, type HostLimit, type HostProfile, knownHosts, sdkClient, unknownHost } from "../../host/profiles.ts";
import { silentLog } from "../../log.ts";
import { thisProgram } from "../../program/program.ts";
import { type LearnedHost, LearnedHosts } from "../../runtime/learned-hosts.ts";
import { readSettings, type Settings } from "../../settings/settings.ts";
import { operand } from "../completion/grammar.ts";
import { jsonFlag } from "../flags.ts";
import { toColumns, widthFor } from "../screens/layout.ts";
import { clean } from "../terminal.ts";
import type { TypedVerb, VerbGroup } from "../verb.ts";

/** How long one host waits over one transport, and where that is known from. */
interface HostRow {
  readonly name: string;
  readonly transport: Transport;
  readonly limit: HostLimit;
  readonly source: "known" | "configured" | "learned" | "assumed";
  readonly from: string;
  /** When it was learned. */
  readonly since?: string;
}

const transports = ["stdio", "http"] as const;
const ownSources: readonly HostRow["source"][] = ["configured", "learned"];

export const verb: VerbGroup = {
  usual: "list",
  verbs: {
    list: {
      line: "list [--json]",
      description: "how long each host waits for a call: known, configured or learned",
      flags: [jsonFlag],
      run: list,
    },
    forget: {
      line: "forget <name>",
      description: "remove what was learned about a host in this project",
      flags: [],
      operands: [operand("<name>", undefined, "what the host calls itself (`clientInfo.name`)")],
      run: forget,
    },
  },
  notes: `
A limit is learned when a host gives up three silent calls in a row at the same
age. It holds for one project and transport, for 30 days, and only ever shortens
a wait. \`deferral.learn: false\` in a config turns this off.
`,
};

async function list({ terminal, flags, options, context: { cwd, env } }: TypedVerb) {
  const { settings } = readSettings({ cwd, env, flags });
  const rows = rowsOf(settings, openLearned(settings).list());
  if (options.json === true) terminal.print(`${JSON.stringify(rows.map(toData), null, 2)}\n`);
  else {
    terminal.print(toTable(rows, widthFor(terminal)));
    terminal.say("  idle: progress starts the time anew.\n");
  }
  return Exit.Ok;
}

async function forget({ terminal, flags, operands, context: { cwd, env } }: TypedVerb) {
  const { settings } = readSettings({ cwd, env, flags });
  const name = (operands[0] ?? "").trim();
  const removed = await openLearned(settings).forget(name);
  if (removed.length === 0)
    throw new CommandError(
      `Nothing was learned about ${JSON.stringify(name)} in this project; \`${thisProgram.name} hosts\` lists what was.`,
    );
  const what = removed.map(({ transport, limitMs }) => `${toSeconds(limitMs)} over ${titleOf(transport)}`).join(", ");
  terminal.say(`${terminal.colors.green("✓")} Forgot what was learned about ${clean(name)}: ${what}\n`);
  return Exit.Ok;
}

function openLearned({ home, project }: Settings): LearnedHosts {
  return new LearnedHosts({ home, project, clock: systemClock, log: silentLog });
}

/** What holds for each host: a configured limit wins, and a learned one counts where it is shorter. */
function rowsOf({ hosts, deferral }: Settings, learned: readonly LearnedHost[]): HostRow[] {
  const names = new Set([
    ...knownHosts.map(({ name }) => name),
    ...Object.keys(hosts),
    ...learned.map(({ host }) => host),
  ]);
  const rows = [...names].flatMap((name) => {
    const profile = findHost(name, hosts);
    const isConfigured = Object.hasOwn(hosts, name);
    return transports.map((transport): HostRow => {
      const limit = profile.limits[transport];
      const found = learned.find((one) => one.host === name && one.transport === transport);
      const isShorter = found !== undefined && found.limitMs < (limit.limitMs ?? Number.POSITIVE_INFINITY);
      const mayCount = deferral.learns && !(isConfigured && hosts[name]?.limitSeconds !== undefined);
      if (isShorter && mayCount) return toLearned(found, limit);
      const source = isConfigured ? "configured" : limit.isAssumed === true ? "assumed" : "known";
      return { name, transport, limit, source, from: isConfigured ? "configured" : profile.source };
    });
  });
  const others = [unknownHost, sdkClient].flatMap((profile) =>
    transports.map((transport) => toAssumed(profile, transport)),
  );
  // What a person has to look at stands at the end, where a screen shows it.
  const isOwn = ({ name }: HostRow) => rows.some((row) => row.name === name && ownSources.includes(row.source));
  return [...rows.filter((row) => !isOwn(row)), ...others, ...rows.filter(isOwn)];
}

function toLearned({ host, transport, limitMs, since }: LearnedHost, { isExtended }: HostLimit): HostRow {
  const at = toTimestamp(since);
  const from = `learned on ${at.slice(0, 10)}`;
  return { name: host, transport, limit: { limitMs, isExtended }, source: "learned", from, since: at };
}

function toAssumed({ name, limits, source }: HostProfile, transport: Transport): HostRow {
  return { name, transport, limit: limits[transport], source: "assumed", from: source };
}

function toData({ name, transport, limit: { limitMs, isExtended }, source, from, since }: HostRow) {
  const limitSeconds = limitMs === undefined ? null : limitMs / 1000;
  return { name, transport, limitSeconds, isExtended, source, from, ...(since !== undefined && { since }) };
}

/** One line for each host, or two where its transports differ. */
function toTable(rows: readonly HostRow[], width: number): string {
  const lines = [...Map.groupBy(rows, ({ name }) => name).values()].flatMap((ofHost) => {
    const cells = ofHost.map(({ limit, from }) => [describeLimit(limit), from.split(/[:;]/)[0] ?? ""]);
    const name = clean(ofHost[0]?.name ?? "");
    if (cells[0]?.join() === cells[1]?.join()) return [[name, "both", ...(cells[0] ?? [])]];
    return ofHost.map(({ transport }, at) => [name, titleOf(transport), ...(cells[at] ?? [])]);
  });
  return toColumns([["Host", "Over", "Waits", "Known from"], ...lines], width);
}

function titleOf(transport: Transport): string {
  return transport === "http" ? "HTTP" : "stdio";
}

function describeLimit({ limitMs, isExtended }: HostLimit): string {
  return limitMs === undefined ? "always" : `${toSeconds(limitMs)}${isExtended ? " idle" : ""}`;
}
