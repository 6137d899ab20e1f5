import path from "node:path";
import { thisProgram } from "../../program/program.ts";
import { fileOf } from "../../setup/host.ts";
import { hosts } from "../../setup/hosts/index.ts";
import { isOnPath, type Machine } from "../../setup/machine.ts";
import { wrapWordsOf } from "../../setup/ownership.ts";
import { findUserScopes, firstOfEach } from "../../setup/scopes.ts";
import { isProjectStart, whyNotStarted } from "../../setup/wrap/repair-entry.ts";
import { type FoundEntry, openFile, type WrapTarget } from "../../setup/wrap/wrap-file.ts";
import { clean } from "../terminal.ts";
import { type Setup, shorten } from "./show-setup.ts";

/** Lists the entries of ours that would not start, each with the reason and what repairs it. */
export function listBrokenEntries({ machine, scope, terminal }: Setup): string {
  const { red, dim } = terminal.colors;
  const targets = scope === "user" ? findUserScopes(hosts, machine).targets : projectTargets(machine);
  const lines = firstOfEach(targets).flatMap((target) =>
    entriesIn(target).flatMap((found) => {
      const root = scope === "project" ? machine.project : path.dirname(target.file);
      const broken = inspect(target, found, { root, machine });
      if (broken === undefined) return [];
      const where = found.folder === undefined ? "" : ` of ${shorten(found.folder, { machine, scope })}`;
      return [
        `${red("✗")} ${target.host.title}: ${clean(found.name)}${where} would not start: ${clean(broken.why)}\n`,
        `  ${dim("Repair")}   ${clean(broken.cure)}\n`,
      ];
    }),
  );
  return lines.length === 0 ? "" : `\n${lines.join("")}`;
}

function projectTargets(machine: Machine): WrapTarget[] {
  return hosts.flatMap((host) => {
    const file = fileOf(host, "project", machine);
    return file === undefined ? [] : [{ host, scope: "project" as const, file }];
  });
}

interface Broken {
  readonly why: string;
  readonly cure: string;
}

/** Returns why an entry would not start; `root` is the folder of the project that the file belongs to. */
function inspect(
  target: WrapTarget,
  { name, entry }: FoundEntry,
  { root, machine }: { root: string; machine: Machine },
): Broken | undefined {
  if (target.scope === "project" && isProjectStart(entry)) {
    const { packageName } = thisProgram;
    // A host with another PATH may find what is installed for all, so only what is found nowhere is told.
    const isInstalled = isInstalledAt(root, machine) || isOnPath(machine, thisProgram.name);
    const why = `${packageName} is not installed in ${root}`;
    return isInstalled ? undefined : { why, cure: `npm install --save-dev ${packageName}` };
  }
  const why = whyNotStarted(entry);
  if (why === undefined) return undefined;
  const isWrapped = wrapWordsOf(entry) !== undefined;
  const words = isWrapped ? `--wrap ${/\s/.test(name) ? JSON.stringify(name) : name}` : target.host.id;
  return { why, cure: `${thisProgram.name} setup ${words}` };
}

/** True where npx finds the package in a folder or one above it. */
function isInstalledAt(folder: string, machine: Machine): boolean {
  if (machine.isThere(path.join(folder, "node_modules", thisProgram.packageName))) return true;
  const parent = path.dirname(folder);
  return parent !== folder && isInstalledAt(parent, machine);
}

/** None for a file that cannot be understood: the table says so. */
function entriesIn(target: WrapTarget): readonly FoundEntry[] {
  try {
    return openFile(target).entries;
  } catch {
    return [];
  }
}
