import { isDeepStrictEqual } from "node:util";
import { fileOf } from "../../setup/host.ts";
import { hosts } from "../../setup/hosts/index.ts";
import { type EntryServer, readServer } from "../../setup/wrap/entry-server.ts";
import { openFile } from "../../setup/wrap/wrap-file.ts";
import type { ProcessContext } from "../process-context.ts";
import { thisMachine } from "./set-up.ts";

/** What a host on this machine calls a server: the name of the first entry that starts or reaches it. */
export function nameInHosts(
  server: { readonly argv: readonly string[] } | { readonly url: string },
  context: ProcessContext,
): string | undefined {
  const machine = thisMachine(context);
  const isIt = (found: EntryServer) =>
    "url" in server
      ? found.kind === "url" && found.url === server.url
      : found.kind === "command" && isDeepStrictEqual(found.words, server.argv);
  for (const host of hosts) {
    try {
      const { entries } = openFile({ host, scope: "user", file: fileOf(host, "user", machine) ?? "" });
      const found = entries.find(({ entry }) => isIt(readServer(entry, machine.isThere)));
      if (found !== undefined) return found.name;
    } catch {
      // A file that cannot be read names nothing.
    }
  }
  return undefined;
}
