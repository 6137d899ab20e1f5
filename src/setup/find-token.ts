import { readFileSync, statSync } from "node:fs";
import { fileOf } from "./host.ts";
import { hosts } from "./hosts/index.ts";
import type { Machine } from "./machine.ts";
import type { SetupRecord } from "./setup-record.ts";
import { type FoundEntry, openFile, type WrapTarget } from "./wrap/wrap-file.ts";

/** A larger script is no script. */
const maxScriptBytes = 1024 * 1024;

/** What sends a token: an entry of a host's file, and the script that it starts where the token stands in that. */
interface TokenSender {
  readonly file: string;
  readonly entry: string;
  readonly script?: string;
}

/** Finds the entries that send a token, in the files of all hosts and in every file in which setup has made one. */
export function findTokenSenders(token: string, machine: Machine, record: SetupRecord): readonly TokenSender[] {
  const found = targetsOf(machine, record).flatMap((target) =>
    entriesOf(target).flatMap(({ name, entry }): TokenSender[] => {
      if (JSON.stringify(entry ?? null).includes(token)) return [{ file: target.file, entry: name }];
      const script = textsIn(entry).find((text) => isScriptWith(text, token));
      return script === undefined ? [] : [{ file: target.file, entry: name, script }];
    }),
  );
  // Several hosts read one file.
  return [...new Map(found.map((sender) => [`${sender.file} ${sender.entry}`, sender])).values()];
}

function targetsOf(machine: Machine, record: SetupRecord): readonly WrapTarget[] {
  const known = hosts.flatMap((host) =>
    (["user", "project"] as const).flatMap((scope): WrapTarget[] => {
      const file = fileOf(host, scope, machine);
      return file === undefined ? [] : [{ host, scope, file }];
    }),
  );
  const inProjects = known.filter(({ scope }) => scope === "project");
  const elsewhere = record.files().flatMap((file): WrapTarget[] => {
    if (known.some((target) => target.file === file)) return [];
    // A host's file has the same name in every project.
    const like = inProjects.find((target) => file.endsWith(target.file.slice(machine.project.length)));
    return like === undefined ? [] : [{ ...like, file }];
  });
  return [...known, ...elsewhere];
}

/** None for a file that is not there, or cannot be understood. */
function entriesOf(target: WrapTarget): readonly FoundEntry[] {
  try {
    return openFile(target).entries;
  } catch {
    return [];
  }
}

/** Every text in an entry, wherever it stands: one of them may name a script. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function isScriptWith(file: string, token: string): boolean {
  try {
    const stat = statSync(file);
    return stat.isFile() && stat.size <= maxScriptBytes && readFileSync(file, "utf8").includes(token);
  } catch {
    return false;
  }
}
