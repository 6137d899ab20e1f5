import { createHash, timingSafeEqual } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { createSecret } from "../../ids.ts";
import { textOf } from "../../wire/json.ts";
import type { SignInPlace } from "./discover-sign-in.ts";
import type { OAuthReach } from "./oauth-reach.ts";
import { SignInError } from "./sign-in-error.ts";
import { toRefusal } from "./token-request.ts";

/** What a browser is sent back with, or why not. */
interface Redirected {
  readonly code: string | null;
  readonly issuer: string | null;
  readonly error: string | null;
  readonly description: string | null;
}

/** A door on this machine for one browser, open while a person signs in. */
export interface RedirectDoor {
  readonly uri: string;
  /** What the browser with this state comes with; others are turned away, and waited on. */
  wait(state: string, signal: AbortSignal): Promise<Redirected>;
  close(): void;
}

const path = "/callback";
const page = (words: string) => `<!doctype html><meta charset="utf-8"><title>Sign-in</title><p>${words}</p>\n`;
/** Nothing that came with the request is repeated, and nothing else is loaded. */
const pageHeaders = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  connection: "close",
};

/** Opens the door: where the last one was, when `last` says so and nobody else is there, else anywhere. */
export async function openRedirectDoor(last: string | undefined): Promise<RedirectDoor> {
  const server = http.createServer({ maxHeaderSize: 32 * 1024, requestTimeout: 10_000 });
  const port = Number(URL.parse(last ?? "")?.port ?? 0);
  await listen(server, port).catch(async () => await listen(server, 0));
  const uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
  return {
    uri,
    wait: async (state, signal) => await answerOne(server, { uri, state, signal }),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function listen(server: http.Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function answerOne(
  server: http.Server,
  { uri, state, signal }: { readonly uri: string; readonly state: string; readonly signal: AbortSignal },
): Promise<Redirected> {
  const found = Promise.withResolvers<Redirected>();
  const onAbort = () => found.reject(signal.reason as Error);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  server.on("request", ({ method, url = "" }, response) => {
    const asked = URL.parse(url, uri);
    const said = asked?.searchParams;
    const isIt = method === "GET" && asked?.pathname === path && isSame(said?.get("state") ?? "", state);
    response.writeHead(isIt ? 200 : 404, pageHeaders);
    response.end(page(isIt ? "You may close this window; the terminal says how it went." : "There is nothing here."));
    if (isIt)
      found.resolve({
        code: said?.get("code") ?? null,
        issuer: said?.get("iss") ?? null,
        error: said?.get("error") ?? null,
        description: said?.get("error_description") ?? null,
      });
  });
  return found.promise.finally(() => signal.removeEventListener("abort", onAbort));
}

const digest = (text: string) => createHash("sha256").update(text).digest();
const isSame = (a: string, b: string) => timingSafeEqual(digest(a), digest(b));

export interface BrowserGrant {
  readonly place: SignInPlace;
  readonly reach: OAuthReach;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly door: RedirectDoor;
  /** Shows the person where to go. */
  readonly show: (url: URL) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Sends a person to the authorization server, and returns the form that their leave is changed into tokens with. */
export async function askInBrowser({ place, reach, clientId, scopes, door, show, signal }: BrowserGrant) {
  if (place.authorizationEndpoint === undefined)
    throw new SignInError(`The authorization server of ${reach.name} has no page to sign in on.`);
  if (!place.hasPkce)
    throw new SignInError(
      `The authorization server of ${reach.name} does not say that it checks who comes back from the browser (PKCE with S256), so nobody is sent there.`,
    );
  const verifier = createSecret();
  const state = createSecret();
  const url = new URL(place.authorizationEndpoint);
  const fields = {
    response_type: "code",
    client_id: clientId,
    redirect_uri: door.uri,
    state,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    resource: place.resource,
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
  };
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  const answer = door.wait(state, signal);
  await Promise.race([show(url), answer]);
  return {
    grant_type: "authorization_code",
    code: readCode(await answer, place, reach),
    redirect_uri: door.uri,
    code_verifier: verifier,
  };
}

/** The code, once it is certain who sent the browser back: another server's code, or its words, are not touched. */
function readCode({ code, issuer, error, description }: Redirected, place: SignInPlace, reach: OAuthReach): string {
  const isWrong = issuer === null ? place.sendsIssuer : issuer !== place.issuer;
  if (isWrong)
    throw new SignInError(
      `The browser came back from another authorization server than the one that ${reach.name} names, so nothing was sent on.`,
    );
  const body = { error: textOf(error ?? undefined), error_description: textOf(description ?? undefined) };
  if (error !== null) throw toRefusal({ status: 400, body, reach });
  if (code === null || code === "") throw new SignInError(`The browser came back from ${reach.name} without a code.`);
  return code;
}
