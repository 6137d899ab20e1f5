import path from "node:path";
import { exchangeAs } from "../../src/client/connection/http-request.ts";
import { systemClock } from "../../src/clock.ts";
import type { UpstreamOAuth } from "../../src/config.ts";
import type { Person } from "../../src/gateway/oauth/sign-in.ts";
import { createAuthorizer } from "../../src/gateway/oauth/upstream-authorizer.ts";
import { homeAt } from "../../src/paths.ts";
import { type OAuthWorld, startOAuthWorld } from "../fixtures/gateway/oauth-server.ts";
import { cleanUp, temporaryFolder } from "./home.ts";

/** Time as the code sees it: an hour may pass at once, and nobody waits long. */
function hurriedClock() {
  let ahead = 0;
  const { after } = systemClock;
  return {
    ...systemClock,
    now: () => systemClock.now() + ahead,
    after: (ms: number, callback: () => void) => after(ms / 50, callback),
    pass: (ms: number) => {
      ahead += ms;
    },
  };
}

/** An upstream that wants tokens, and the gateway's end of it, in a home of its own. */
export async function openSignIn(oauth?: UpstreamOAuth) {
  const world = await startOAuthWorld();
  cleanUp(() => world.close());
  const home = homeAt({ MEANWHILE_HOME: path.join(temporaryFolder(), "home") });
  const clock = hurriedClock();
  const upstream = { name: "notes", url: world.upstream, oauth, home, clock };
  const authorizer = createAuthorizer({ ...upstream, login: "upstreams login notes" });
  return { world, home, clock, upstream, authorizer };
}

/** A browser: a client that goes where it is sent. `said` is what the terminal shows. */
export function personAt(
  options: { hasBrowser?: boolean; said?: string[] } = {},
): Person & { readonly said: string[] } {
  const said = options.said ?? [];
  return {
    said,
    say: (text) => void said.push(text),
    openPage: options.hasBrowser === false ? undefined : async (url) => (await fetch(url)).ok,
  };
}

/** The status of one request as the gateway sends them: once more, where that is worth it. */
export async function ask({ world, authorizer }: Pick<Awaited<ReturnType<typeof openSignIn>>, "world" | "authorizer">) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  const response = await exchangeAs(authorizer, new URL(world.upstream), { method: "POST", headers: {}, body });
  response.destroy();
  return response.statusCode;
}

export const never: AbortSignal = new AbortController().signal;
export const tokenRequests = (world: OAuthWorld) => world.seen.filter(({ path: at }) => at === "/token");
