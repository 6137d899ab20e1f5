import path from "node:path";
import type { Clock } from "../clock.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import { Gateway } from "../gateway/gateway.ts";
import { createAuthorizer } from "../gateway/oauth/upstream-authorizer.ts";
import { loginWords, toSignIn } from "../gateway/oauth/upstream-sign-in.ts";
import { openUpstreamLink } from "../gateway/open-link.ts";
import { endOrphans } from "../gateway/orphans.ts";
import { resolveAddress } from "../gateway/resolve-address.ts";
import { UpstreamLog, upstreamLogFile } from "../gateway/upstream-log.ts";
import { UpstreamNames } from "../gateway/upstream-names.ts";
import type { Logger } from "../log.ts";
import { followUpNames } from "../mcp/generation/follow-up-names.ts";
import type { GuestCompany } from "../mcp/guest-view.ts";
import { fingerprint } from "../project/project.ts";
import { StoredCatalog } from "../project/stored-catalog.ts";
import { sessionEnvironment } from "../project/wrap.ts";
import type { Settings } from "../settings/settings.ts";

export interface GatewayParts {
  /** What the author registers by hand. */
  readonly beside?: GuestCompany | undefined;
  /** The one of them that is needed; the others count for what it is called. */
  readonly only?: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The servers that stand behind this one; undefined where none is named. Nothing is started yet. */
export function createGateway(settings: Settings, { clock, log, beside, only }: GatewayParts): Gateway | undefined {
  const { isWrap, home, project, leftOut } = settings;
  const chosen = Object.entries(settings.upstreams).filter(([name]) => only === undefined || name === only);
  const upstreams = Object.fromEntries(chosen);
  if (Object.keys({ ...upstreams, ...leftOut }).length === 0) return undefined;
  const own = sessionEnvironment(process.env);
  const recordFolder = path.join(home.runFolder, "upstreams");
  const orphans = endOrphans(recordFolder);
  if (orphans > 0) log.info("ended what a process that was killed had left running", { processes: orphans });
  const gateway = new Gateway({
    upstreams,
    leftOut,
    isWrap,
    ...namesFor(settings),
    beside,
    taken: followUpNames(settings),
    openLink: (address, events) => openUpstreamLink(address, events, { recordFolder }),
    resolve(name, config, { folder = settings.workingFolder, environment = own }) {
      const place = { name, environment, folder };
      const { address, secrets } = resolveAddress(config, place);
      const kept = new UpstreamLog({ file: upstreamLogFile(home, project, name), secrets, clock });
      const signIn = toSignIn(config, address, { place, home });
      const login = loginWords(name, config, isWrap);
      const authorizer = signIn === undefined ? undefined : createAuthorizer({ ...signIn, clock, login });
      return {
        address: address.kind === "url" ? { ...address, authorizer } : address,
        onStderr: (text) => kept.write(text),
        onGone: () => kept.close(),
      };
    },
    memoryFile: (name, { command, args, cwd, url, transport }) =>
      path.join(home.runFolder, `upstream-${fingerprint([name, command, args, cwd, url, transport])}.json`),
    environment: own,
    clock,
    log,
  });
  if (!isWrap) keepTools(gateway, settings);
  return gateway;
}

/** For help and completion, which start nothing. */
function keepTools({ upstreams, sources }: Gateway, { home, project }: Settings): void {
  const stored = new StoredCatalog(home, []);
  for (const [at, { name }] of upstreams.entries()) {
    const source = sources[at];
    const keep = () => stored.keepUpstream(project, name, source?.entries ?? []);
    source?.onChange(keep);
  }
}

/** One upstream for a terminal, with what it is known to list. */
export function openUpstream(settings: Settings, name: string, parts: GatewayParts) {
  const gateway = createGateway(settings, { ...parts, only: name });
  return {
    /** A tool by the upstream's own name for it. */
    find: (tool: string): CatalogEntry | undefined =>
      gateway?.sources[0]?.entries.find(({ command }) => command.foreign?.listing.name === tool),
    /** Has it say what it lists; why it could not. */
    ask: async (): Promise<string | undefined> => {
      await gateway?.askAll(process.cwd());
      return gateway?.sources[0]?.trouble;
    },
    close: () => gateway?.close(),
  };
}

/**
 * One that is all there is has the names that it gives. Several bear theirs in front of each, and one beside commands of
 * ours where two would be called the same, unless something else is said.
 */
function namesFor({ upstreams, isWrap, upstreamPrefix, home, project }: Settings) {
  const names = Object.keys(upstreams);
  const isOne = names.length === 1;
  const isVerbatim = isWrap && isOne && upstreamPrefix !== "always";
  const file = path.join(home.runFolder, `upstream-names-${project}.json`);
  const prefix = upstreamPrefix ?? (isOne ? "collision" : "always");
  return {
    isVerbatim,
    names: new UpstreamNames({ file: isVerbatim ? undefined : file, upstreams: names, prefix, isVerbatim }),
  };
}
