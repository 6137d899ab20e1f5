import { existsSync } from "node:fs";
import { outOfDescriptors } from "../../errors.ts";
import type { Home } from "../../paths.ts";

/** The daemon could not be reached or started; the sentence says why. */
export class DaemonUnreachable extends Error {
  override readonly name: string = "DaemonUnreachable";
  /** The same without a path, for the client. Undefined where the sentence itself will do. */
  readonly forClients: string | undefined;

  constructor(message: string, { forClients }: { readonly forClients?: string } = {}) {
    super(message);
    this.forClients = forClients;
  }
}

/** It is there and takes nobody in for now: no reason to give up. */
export class DaemonFull extends DaemonUnreachable {
  override readonly name = "DaemonFull";

  constructor(pid: number | undefined) {
    super(
      `Daemon ${pid ?? ""} takes no more sessions for now: ${outOfDescriptors}. This one is tried again until there is room; --in-process needs no daemon.`.replace(
        "  ",
        " ",
      ),
    );
  }
}

/** The home of a session that has begun is gone: to make an empty one in its place would hide that. */
class HomeGone extends DaemonUnreachable {
  override readonly name = "HomeGone";

  constructor(home: Home) {
    const rest = "put it back, and this session goes on; a new session makes a new home";
    super(`The home folder ${home.folder} is gone, and no other is made in its place: ${rest}.`, {
      forClients: `The home folder is gone, and no other is made in its place; whoever moved it has to put it back, then this session goes on.`,
    });
  }
}

/** The daemon has read the project and come to another key than whoever started it. */
export class KeyOutdated extends DaemonUnreachable {
  override readonly name = "KeyOutdated";
  /** The variables that the key counts, as the daemon says. */
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    super(
      "The project's config says something else each time it is read, or its code reads other variables; serve with --in-process.",
    );
    this.names = names;
  }
}

/** Throws where the home of a session that has begun is gone. */
export function refuseGone(home: Home, isHomeKnown = false): void {
  if (isHomeKnown && !existsSync(home.folder)) throw new HomeGone(home);
}
