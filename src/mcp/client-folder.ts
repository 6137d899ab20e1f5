import { fileURLToPath } from "node:url";
import { isObject, type Json, listOf } from "../wire/json.ts";
import { badParams } from "./params.ts";
import type { ClientConnection, ClientRequest } from "./request.ts";

/** The key in the `_meta` of a request by which a client names its working folder. */
const folderKey = "meanwhile/folder";
/** A client that has not listed its roots after this time has no folder until they change. */
const rootsLimitMs = 5_000;

/** Returns an absolute path other than the root of the file system; undefined for everything else. */
export type ReadFolder = (said: unknown) => string | undefined;

/**
 * The working folder of a client that connects to a daemon's socket itself. No stdio proxy reports its folder, so the
 * client names it in `_meta`, or has roots, of which the first one is taken.
 */
export class ClientFolder {
  readonly #read: ReadFolder;
  #named: string | undefined;
  #root: string | undefined;
  #asking: Promise<void> | undefined;

  constructor(read: ReadFolder) {
    this.#read = read;
  }

  get path(): string | undefined {
    return this.#named ?? this.#root;
  }

  /** Takes the folder of a request's `_meta`; it stays until another is named. Throws for what is no folder. */
  note(meta: Json): void {
    const said = meta[folderKey];
    if (said === undefined) return;
    const folder = this.#read(said);
    if (folder === undefined)
      throw badParams(
        `\`_meta["${folderKey}"]\` must be the absolute path of a folder other than the root of the file system.`,
      );
    this.#named = folder;
  }

  /**
   * Asks the client of a request for its roots, once for each list of them. Resolves when they are known; undefined when
   * there is nothing to wait for. Since 2026-07-28 a server sends no requests, so such a client names its folder.
   */
  ask({ client, connection }: ClientRequest): Promise<void> | undefined {
    if (this.#named !== undefined || client.isModern || client.capabilities.roots === undefined) return undefined;
    if (this.#asking === undefined) {
      const asking: Promise<void> = this.#firstRoot(connection).then((root) => {
        if (this.#asking === asking) this.#root = root;
      });
      this.#asking = asking;
    }
    return this.#asking;
  }

  /** The client has other roots: the next call asks for them. */
  forgetRoots(): void {
    this.#asking = undefined;
  }

  /** A client that answers with an error, or not in time, has none. */
  async #firstRoot(connection: ClientConnection): Promise<string | undefined> {
    const limits = { signal: connection.closed, timeoutMs: rootsLimitMs };
    const result = await connection.ask("roots/list", {}, limits).catch(() => undefined);
    const roots = isObject(result) ? listOf(result.roots) : [];
    return roots
      .map((root) => this.#read(isObject(root) ? toPath(root.uri) : undefined))
      .find((path) => path !== undefined);
  }
}

function toPath(uri: unknown): string | undefined {
  try {
    return typeof uri === "string" ? fileURLToPath(uri) : undefined;
  } catch {
    return undefined; // Not a `file:` address.
  }
}
