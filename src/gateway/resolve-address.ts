import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import type { UpstreamConfig } from "../config.ts";
import { RuntimeError } from "../errors.ts";
import { describeMissing, replaceReferences } from "../project/variable-references.ts";
import { system } from "../system/system.ts";
import type { UpstreamAddress } from "./upstream-link.ts";

/** Whose session an upstream is opened for. */
export interface SessionPlace {
  /** What the upstream is called. */
  readonly name: string;
  /** The session's variables. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where it works: relative paths are below it. Undefined: the root of the file system. */
  readonly folder: string | undefined;
}

export interface ResolvedAddress {
  readonly address: UpstreamAddress;
  /** What must not be seen in a log, longest first; see `redact`. */
  readonly secrets: readonly string[];
}

/** More is no secret, and no value of a variable. */
const maxFileBytes = 64 * 1024;
/** What is shorter stands in too many other words. */
const minSecretLength = 6;
/** Everybody may know these. */
const known = new Set(
  "HOME USER LOGNAME PATH PWD SHELL LANG TMPDIR XDG_RUNTIME_DIR workspaceFolder userHome".split(" "),
);
const secretName = /auth|cookie|key|token|secret|passw|credential/i;

/**
 * Where an upstream is for a session: every reference to a variable or a file is replaced. Throws one sentence that names
 * the upstream, the field and what is missing, and never a value.
 */
export function resolveAddress(config: UpstreamConfig, place: SessionPlace): ResolvedAddress {
  const resolver = new Resolver(place);
  const { command, args = [], cwd, env = {}, url, headers = {}, transport } = config;
  const address: UpstreamAddress =
    url === undefined
      ? {
          kind: "command",
          command: expandHome(resolver.text(command ?? "", "command")),
          args: args.map((word, at) => resolver.text(word, `args.${at}`)),
          cwd: folderOf(cwd === undefined ? undefined : resolver.text(cwd, "cwd"), place.folder),
          env: { ...withoutGaps(place.environment), ...resolver.values(env, "env") },
        }
      : {
          kind: "url",
          url: resolver.url(url),
          headers: resolver.values(headers, "headers"),
          transport,
          authorizer: undefined,
        };
  return { address, secrets: resolver.secrets };
}

/** One value of an upstream's, as the secret of its sign-in. */
export function resolveValue(value: string, field: string, place: SessionPlace): string {
  return new Resolver(place).value(value, field);
}

/** A text for a log: no secret is left in it. */
export function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce(
    (clean, secret) => (secret.length >= minSecretLength ? clean.replaceAll(secret, "[secret]") : clean),
    text,
  );
}

class Resolver {
  readonly #place: SessionPlace;
  readonly #secrets = new Set<string>();

  constructor(place: SessionPlace) {
    this.#place = place;
  }

  get secrets(): readonly string[] {
    return [...this.#secrets]
      .filter((secret) => secret.length >= minSecretLength)
      .sort((one, other) => other.length - one.length);
  }

  values(values: Readonly<Record<string, string>>, at: string): Record<string, string> {
    return Object.fromEntries(
      Object.entries(values).map(([name, written]) => {
        const value = this.value(written, `${at}.${name}`);
        if (secretName.test(name)) this.#keep(value);
        return [name, value];
      }),
    );
  }

  /** A value that may be a file's. */
  value(written: string, field: string): string {
    if (!written.startsWith("file:")) return this.text(written, field);
    const file = expandHome(this.text(written.slice("file:".length), field));
    const value = this.#readFile(path.resolve(this.#place.folder ?? "/", file), field);
    this.#keep(value);
    return value;
  }

  url(written: string): string {
    const url = this.text(written, "url");
    if (/^https?:\/\/[^/\s]/i.test(url) && URL.canParse(url)) return url;
    throw this.#refuse("url", "what the variables make of it is no address that begins with http:// or https://");
  }

  text(written: string, field: string): string {
    return replaceReferences(written, (reference) => {
      const { name, otherwise } = reference;
      const value = name === undefined ? undefined : this.#lookUp(name);
      if (value === undefined && otherwise === undefined)
        throw new RuntimeError("CONFIG_INVALID", describeMissing(this.#place.name, field, reference));
      if (value !== undefined && name !== undefined && !known.has(name)) this.#keep(value);
      return value ?? otherwise ?? "";
    });
  }

  /** A variable that is empty is as good as none, where there is something else to take. */
  #lookUp(name: string): string | undefined {
    const { environment, folder } = this.#place;
    const value = environment[name];
    if (value !== undefined && value !== "") return value;
    if (name === "workspaceFolder") return folder;
    return name === "userHome" ? homedir() : undefined;
  }

  /** With its lines, because a log is read by lines, and with what stands behind `Bearer`. */
  #keep(value: string): void {
    for (const part of [value, ...value.split(/\r?\n/), value.replace(/^\w+ (?=\S+$)/, "")]) this.#secrets.add(part);
  }

  #readFile(file: string, field: string): string {
    let descriptor: number | undefined;
    try {
      descriptor = openSync(file, "r");
      const stat = fstatSync(descriptor);
      if (!stat.isFile()) throw this.#refuse(field, `${file} is no file`);
      if (!system.isPrivate(stat))
        throw this.#refuse(field, `${file} may be read by others, or is another user's; chmod 600 ${file}`);
      if (stat.size > maxFileBytes) throw this.#refuse(field, `${file} has more than ${maxFileBytes} bytes`);
      return readFileSync(descriptor, "utf8").replace(/\r?\n$/, "");
    } catch (error) {
      if (error instanceof RuntimeError) throw error;
      const { code = "" } = error as NodeJS.ErrnoException;
      throw this.#refuse(field, `${file} cannot be read (${code}); make it, readable by you alone`);
    } finally {
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }

  #refuse(field: string, why: string): RuntimeError {
    return new RuntimeError("CONFIG_INVALID", `The upstream ${this.#place.name}, \`${field}\`: ${why}.`);
  }
}

function folderOf(cwd: string | undefined, folder = path.resolve("/")): string {
  return cwd === undefined ? folder : path.resolve(folder, expandHome(cwd));
}

function expandHome(file: string): string {
  return file === "~" || file.startsWith("~/") ? path.join(homedir(), file.slice(1)) : file;
}

function withoutGaps(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined)) as Record<string, string>;
}
