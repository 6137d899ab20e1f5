import type { UpstreamConfig } from "./upstream-config.ts";

/** Values of variables in what is said of upstreams, as hosts write them: `${NAME}`, `${NAME:-default}`, `${env:NAME}`. */

/** `$${` is `${` and nothing more. */
const pattern = /\$\$\{|\$\{(input:[^}]*|(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?)\}/g;

/** What some hosts know as well: where the session works, and whose machine it is. */
const places = ["workspaceFolder", "userHome"];

export interface Reference {
  /** As it is written between the braces. */
  readonly written: string;
  /** The variable; undefined for what only a host can ask its user. */
  readonly name: string | undefined;
  /** What counts where the variable is not set. */
  readonly otherwise: string | undefined;
}

/** A text with its references replaced. */
export function replaceReferences(text: string, toValue: (reference: Reference) => string): string {
  return text.replaceAll(pattern, (whole, written?: string, name?: string, otherwise?: string) =>
    written === undefined ? whole.slice(1) : toValue({ written, name, otherwise }),
  );
}

/** A text that is meant as it stands. */
export function withoutReferences(text: string): string {
  return text.replaceAll("${", () => "$${");
}

/** True where a value is not what is written. */
export function isReference(text: string): boolean {
  return text.startsWith("file:") || readReferences(text).length > 0;
}

/** The variables that are referred to, each once: their values make another server of an upstream. */
export function referencesIn(upstreams: Readonly<Record<string, unknown>>): string[] {
  const names = Object.values(upstreams).flatMap((upstream) =>
    fieldsOf(upstream).flatMap(([, text]) => readReferences(text).flatMap(({ name }) => name ?? [])),
  );
  return [...new Set(names)].filter((name) => !places.includes(name)).sort();
}

/** Says which variable an upstream needs that is not set; undefined when all are. */
export function unsetVariable(
  upstreams: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  for (const [upstream, said] of Object.entries(upstreams))
    for (const [field, text] of fieldsOf(said)) {
      const missing = readReferences(text).find(
        ({ name, otherwise }) =>
          otherwise === undefined && (name === undefined || (!places.includes(name) && (env[name] ?? "") === "")),
      );
      if (missing !== undefined) return describeMissing(upstream, field, missing);
    }
  return undefined;
}

/** One sentence that names the upstream, the field and the variable. */
export function describeMissing(upstream: string, field: string, { written, name }: Reference): string {
  const why =
    name === undefined
      ? `\${${written}} is for a host to ask; write \${NAME} and set the variable`
      : `the variable ${name} is not set; set it where this is started, or write \${${name}:-default}`;
  return `The upstream ${upstream}, \`${field}\`: ${why}.`;
}

function readReferences(text: string): Reference[] {
  return [...text.matchAll(pattern)].flatMap(([, written, name, otherwise]) =>
    written === undefined ? [] : [{ written, name, otherwise }],
  );
}

/** Every text in which a reference counts; nothing is taken for granted, because a front reads files unchecked. */
function fieldsOf(upstream: unknown): [string, string][] {
  const { command, args, cwd, env, url, headers, oauth } = toObject(upstream) as UpstreamConfig;
  const { clientId, clientSecret } = toObject(oauth);
  const below = (field: string, many: unknown) =>
    Object.entries(toObject(many)).map(([name, one]): [string, unknown] => [`${field}.${name}`, one]);
  const said: [string, unknown][] = [
    ...Object.entries({ command, cwd, url, "oauth.clientId": clientId, "oauth.clientSecret": clientSecret }),
    ...[...below("args", args), ...below("env", env), ...below("headers", headers)],
  ];
  return said.filter((one): one is [string, string] => typeof one[1] === "string");
}

function toObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
