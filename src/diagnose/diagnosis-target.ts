import { UsageError } from "../errors.ts";
import { quoteWord, redact } from "./text.ts";
import type { AddressPolicy } from "./wire/addresses.ts";

/** What is diagnosed: a URL, or a command line that is started again and again. */
export type DiagnosisTarget = (HttpServerTarget | StdioServerTarget) & {
  /** What a host on this machine calls it in its settings, where one has it. */
  readonly entry?: string | undefined;
};

export interface HttpServerTarget {
  readonly kind: "http";
  readonly url: string;
  /** Sent with every request, to this origin only, and shown nowhere. */
  readonly headers: Readonly<Record<string, string>>;
  /** Another caller's, to see whether callers are kept apart. */
  readonly otherHeaders?: Readonly<Record<string, string>> | undefined;
  /** A credential for another server, to see whether it is refused. */
  readonly foreignHeaders?: Readonly<Record<string, string>> | undefined;
  readonly policy: AddressPolicy;
}

export interface StdioServerTarget {
  readonly kind: "stdio";
  readonly argv: readonly string[];
  readonly cwd?: string | undefined;
}

/** A tool that the user wants called, safe or not. */
export interface ToolToCall {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
}

/** Reads a URL; one sentence for what cannot be diagnosed. */
export function checkUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError("The target is no http or https URL; it looks like https://host/mcp.");
  if (url.username !== "" || url.password !== "")
    throw new UsageError(
      "The target holds a user name or password; give it as a header instead: --header 'Authorization: …'.",
    );
  return url;
}

/** The same server at another of its paths, where it has redirected us to. */
export function movedTarget(target: DiagnosisTarget, path: string): DiagnosisTarget {
  if (target.kind !== "http") return target;
  const { origin } = new URL(target.url);
  const moved = URL.parse(`${origin}${path}`);
  return moved?.origin === origin ? { ...target, url: moved.href } : target;
}

/** The target as it may be shown: what follows the `?` of a URL, and what looks like a secret, is left out. */
export function nameOf(target: DiagnosisTarget): string {
  if (target.kind === "stdio") return redact(target.argv.map(quoteWord).join(" "));
  const { origin, pathname, search } = new URL(target.url);
  return `${origin}${redact(pathname)}${search === "" ? "" : "?…"}`;
}

/** What must never be shown. */
export function secretsOf(target: DiagnosisTarget): readonly string[] {
  if (target.kind === "stdio") return [];
  const { headers, otherHeaders = {}, foreignHeaders = {} } = target;
  const values = [headers, otherHeaders, foreignHeaders].flatMap((each) => Object.values(each));
  const bare = values.map((value) => value.replace(/^\w+\s+/, ""));
  const query = [...new URL(target.url).searchParams.values()];
  const all = [...values, ...bare, ...values.flatMap(passwordsOf), ...query];
  return [...new Set(all)].filter((value) => value.length >= 4).sort((a, b) => b.length - a.length);
}

/** What is inside a `Basic` header or a row of cookies. */
function passwordsOf(value: string): string[] {
  const packed = /^Basic\s+(\S+)$/i.exec(value)?.[1];
  if (packed !== undefined)
    return [
      Buffer.from(packed, "base64")
        .toString("utf8")
        .replace(/^[^:]*:/, ""),
    ];
  return [...value.matchAll(/[\w.-]+=([^;\s]{8,})/g)].map((match) => match[1] as string);
}
