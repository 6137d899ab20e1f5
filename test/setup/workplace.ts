import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { homeAt } from "../../src/paths.ts";
import { applyChange, type ConfigChange, planAdd, planRemove, type SetupTarget } from "../../src/setup/change.ts";
import type { Entry, Launch, SetupHost } from "../../src/setup/host.ts";
import { hosts } from "../../src/setup/hosts/index.ts";
import type { Machine } from "../../src/setup/machine.ts";
import { SetupRecord } from "../../src/setup/setup-record.ts";
import { planUnwrap } from "../../src/setup/wrap/plan-unwrap.ts";
import { planWrap } from "../../src/setup/wrap/plan-wrap.ts";
import { applyWrap, type OpenedFile, openFile, type WrapChange } from "../../src/setup/wrap/wrap-file.ts";
import { WrapRecord } from "../../src/setup/wrap/wrap-record.ts";
import { temporaryFolder } from "../helpers/home.ts";

export const launch: Launch = {
  command: "/usr/local/bin/node",
  args: ["/opt/meanwhile/bin/meanwhile.cjs", "serve", "--commands", "/home/ada/my reports/commands"],
  env: {},
};

export function hostNamed(id: string): SetupHost {
  return hosts.find((host) => host.id === id) ?? expectNever(id);
}

function expectNever(id: string): never {
  throw new Error(`there is no host ${id}`);
}

/** One host's file in a folder of its own, and what setup does to it. */
export function workplace(id: string, content?: string | Buffer) {
  const folder = temporaryFolder();
  const host = hostNamed(id);
  const machine: Machine = {
    platform: "linux",
    home: path.join(folder, "user"),
    project: path.join(folder, "project"),
    env: {},
    isThere: existsSync,
    list: (at) => (existsSync(at) ? readdirSync(at) : []),
  };
  const file = host.userFile(machine);
  if (content !== undefined) {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  const record = new SetupRecord(homeAt({ MEANWHILE_HOME: path.join(folder, "home") }));
  const target: SetupTarget = { host, scope: "user", file, name: "meanwhile" };
  const act = (change: ConfigChange) => ({ kind: change.kind, ...applyChange(change, record) });
  return {
    folder,
    file,
    machine,
    record,
    target,
    read: () => readFileSync(file, "utf8"),
    write: (text: string | Buffer) => writeFileSync(file, text),
    add: (entry: Entry = host.toEntry(launch), name = "meanwhile") =>
      act(planAdd({ ...target, name }, record, { entry, isReplacing: false })),
    replace: (entry: Entry = host.toEntry(launch)) => act(planAdd(target, record, { entry, isReplacing: true })),
    remove: (name = "meanwhile") => act(planRemove({ ...target, name }, record, host.toEntry(launch))),
  };
}

interface Wrapped extends WrapChange {
  readonly backup: string | undefined;
  readonly names: readonly string[];
}

/** One host's file with entries of others, and what becomes of them; all of them, or those named. */
export function wrapplace(id: string, content: string | Buffer) {
  const { folder, file, record, target, read, write } = workplace(id, content);
  const wrapRecord = new WrapRecord(homeAt({ MEANWHILE_HOME: path.join(folder, "home") }));
  const means = {
    toLaunch: (words: readonly string[]): Launch => ({ ...launch, args: [launch.args[0] ?? "", "wrap", ...words] }),
    isThere: () => false,
  };
  const act = (
    names: readonly string[],
    plan: (opened: OpenedFile, chosen: OpenedFile["entries"]) => WrapChange,
  ): Wrapped => {
    const opened = openFile(target);
    const isChosen = (name: string) => names.length === 0 || names.includes(name);
    const change = plan(
      opened,
      opened.entries.filter(({ name }) => isChosen(name)),
    );
    const { backup } = applyWrap(change, { setup: record, wrap: wrapRecord });
    return { ...change, backup, names: change.done.map(({ name }) => name) };
  };
  return {
    folder,
    file,
    record,
    read,
    write,
    bytes: () => readFileSync(file),
    wrap: (...names: string[]) => act(names, (opened, chosen) => planWrap(opened, chosen, means)),
    unwrap: (...names: string[]) => act(names, (opened, chosen) => planUnwrap(opened, chosen, { record: wrapRecord })),
    entryOf: (name: string) => openFile(target).entries.find((found) => found.name === name)?.entry,
  };
}
