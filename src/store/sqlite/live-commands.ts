import type { TaskFile } from "./task-file.ts";

interface Look {
  readonly version: number;
  readonly writes: number;
  readonly commands: ReadonlyMap<string, ReadonlySet<string>>;
  isOfThisMoment: boolean;
}

/** The commands of which tasks are live: read again when somebody has written, here or elsewhere. */
export class LiveCommands {
  readonly #file: TaskFile;
  #latest: Look | undefined;

  constructor(file: TaskFile) {
    this.#file = file;
  }

  has(project: string, command: string): boolean {
    return this.#file.isWriting || this.#read().get(project)?.has(command) === true;
  }

  #read(): Look["commands"] {
    const { writes } = this.#file;
    const known = this.#latest?.writes === writes ? this.#latest : undefined;
    // What came in one piece was sent before any of it is answered: for all of it one look is late enough.
    if (known?.isOfThisMoment === true) return known.commands;
    const version = this.#file.readVersion();
    const latest =
      known?.version === version ? known : { version, writes, commands: this.#readCommands(), isOfThisMoment: true };
    this.#latest = latest;
    latest.isOfThisMoment = true;
    queueMicrotask(() => {
      latest.isOfThisMoment = false;
    });
    return latest.commands;
  }

  #readCommands(): Look["commands"] {
    const rows = this.#file.all<{ project: string; command: string }>("liveCommands", {});
    return new Map(
      [...Map.groupBy(rows, (row) => row.project)].map(([project, own]) => [
        project,
        new Set(own.map((row) => row.command)),
      ]),
    );
  }
}
