import { thisProgram } from "../program/program.ts";
import { nobodys } from "../system/child-environment.ts";
import type { UpstreamConfig, UpstreamPrefix } from "./upstream-config.ts";
import { isReference } from "./variable-references.ts";

/** What `meanwhile wrap` was told: a project that has nothing but upstreams, wherever it is typed. */
export interface Wrap {
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>;
  readonly prefix?: UpstreamPrefix;
  /** Servers of the file that are not served, by name, each with the reason: clients are told. */
  readonly leftOut?: Readonly<Record<string, string>>;
}

/** How a daemon is told what it wraps: its command line could be read by everybody. */
export const wrapVariable = () => thisProgram.variable("WRAP");

/** Takes what this process is to wrap out of its environment, so that nothing it starts inherits it. */
export function takeWrap(env: Record<string, string | undefined>): Wrap | undefined {
  const said = env[wrapVariable()];
  delete env[wrapVariable()];
  return said === undefined ? undefined : (JSON.parse(said) as Wrap);
}

/**
 * What names a wrap: what is started or called, as it is written. Values that may be secrets are told apart by whoever
 * knows the home's salt.
 */
export function wrapParts({ upstreams }: Wrap): string[] {
  return [
    "the upstreams",
    ...Object.entries(upstreams).map(([name, { command, args, cwd, url, transport, headers, env }]) =>
      JSON.stringify([name, command, args, cwd, url, transport, asWritten(headers), asWritten(env)]),
    ),
  ];
}

function asWritten(values: UpstreamConfig["env"] = {}): string[][] {
  return Object.entries(values).map(([name, value]) => (isReference(value) ? [name, value] : [name]));
}

/** The values in what is wrapped that stand there in clear, by what each is for. */
export function literalsOf({ upstreams }: Wrap): Record<string, string> {
  const found = Object.entries(upstreams).flatMap(([upstream, { headers = {}, env = {} }]) =>
    [headers, env].flatMap((values, at) =>
      Object.entries(values)
        .filter(([, value]) => !isReference(value))
        .map(([name, value]) => [`${upstream} ${at === 0 ? "header" : "env"} ${name}`, value]),
    ),
  );
  return Object.fromEntries(found);
}

/** How people know a wrap. */
export function describeWrap(upstreams: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(upstreams);
  return `the upstream${names.length === 1 ? "" : "s"} ${names.join(", ")}`;
}

/** Between our own processes alone, or about the client of this one. */
const inner = ["DAEMON_KEY", "WRAP", "HOST", "FAILPOINT"];

/** The variables of a session, for the servers that are started for it: all that it has but what is ours alone. */
export function sessionEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const ours = [...Object.keys(nobodys), ...inner.map((name) => thisProgram.variable(name))];
  const kept = Object.entries(env).filter(([name, value]) => value !== undefined && !ours.includes(name));
  return Object.fromEntries(kept) as Record<string, string>;
}
