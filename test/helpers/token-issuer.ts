import http, { type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import type { Clock } from "../../src/clock.ts";
import { cleanUp } from "./home.ts";

type Answer = (response: ServerResponse) => void;
type Claims = Record<string, unknown>;

export const audience = "https://example.com/mcp";

/** An authorization server on this machine: its metadata, its keys, and the tokens that it signs. */
export class TokenIssuer {
  /** Paths that were requested, in order. */
  readonly requests: string[] = [];
  /** Answers for a path in place of the usual one. */
  readonly instead = new Map<string, Answer>();
  /** The keys that are published. */
  keys: JWK[] = [];
  /** The path of the issuer identifier. */
  path = "";
  readonly #clock: Pick<Clock, "now">;
  readonly #server = http.createServer(({ url = "/" }, response) => this.#answer(url, response));
  #key: { readonly privateKey: CryptoKey; readonly alg: string; readonly kid: string } | undefined;
  #port = 0;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get issuer(): string {
    return `${this.origin}${this.path}`;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    if (this.#key === undefined) await this.rotate("first");
    return this;
  }

  /** Stops listening. `start` listens on the same port again. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** Signs with a new key from now on, and publishes it beside those before. */
  async rotate(kid: string, alg = "RS256"): Promise<void> {
    const { publicKey, privateKey } = await generateKeyPair(alg);
    this.#key = { privateKey, alg, kid };
    this.keys = [...this.keys, { ...(await exportJWK(publicKey)), kid, alg, use: "sig" }];
  }

  /** A token that is valid for an hour. A claim or header that is `undefined` is left out. */
  async token(claims: Claims = {}, header: Claims = {}): Promise<string> {
    if (this.#key === undefined) throw new Error("start the issuer first");
    const { privateKey, alg, kid } = this.#key;
    const all = {
      ...{ iss: this.issuer, aud: audience, sub: "ada", client_id: "editor", scope: "meanwhile:call" },
      ...{ exp: this.seconds(3_600), ...claims },
    };
    return await new SignJWT(without(all))
      .setProtectedHeader(without({ alg, kid, typ: "at+jwt", ...header }))
      .sign(privateKey);
  }

  /** A time from now, as the claims of a token have it. */
  seconds(fromNow: number): number {
    return Math.floor(this.#clock.now() / 1000) + fromNow;
  }

  countOf(path: string): number {
    return this.requests.filter((request) => request === path).length;
  }

  #answer(url: string, response: ServerResponse): void {
    this.requests.push(url);
    const instead = this.instead.get(url);
    if (instead !== undefined) return void instead(response);
    if (url === "/keys") return void sendJson(response, { keys: this.keys });
    const isMetadata = url === `/.well-known/oauth-authorization-server${this.path.replace(/\/$/, "")}`;
    if (isMetadata) return void sendJson(response, { issuer: this.issuer, jwks_uri: `${this.origin}/keys` });
    response.writeHead(404).end();
  }
}

export function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
}

export async function startTokenIssuer(clock: Pick<Clock, "now">): Promise<TokenIssuer> {
  const issuer = new TokenIssuer(clock);
  await issuer.start();
  cleanUp(() => issuer.stop());
  return issuer;
}

const without = (all: Claims) =>
  Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as { alg: string };
