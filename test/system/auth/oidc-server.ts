import { generateKeyPairSync } from "node:crypto";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { cleanUp } from "../../helpers/home.ts";

/** The parts of `oidc-provider` that are used here; it comes without types. */
interface Provider {
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  on(event: string, listener: (context: { readonly oidc: { readonly params: Record<string, string> } }) => void): void;
  readonly Grant: new (
    of: object,
  ) => {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  };
}
type ProviderClass = new (issuer: string, configuration: object) => Provider;

export interface OidcServer {
  readonly issuer: string;
  /** The grant types of successful token requests, in order. */
  readonly grants: string[];
  /** For so many seconds a new access token is accepted, clock tolerance included. */
  acceptedSeconds: number;
  /** Documents of clients that have a URL as their ID. */
  readonly clientDocuments: Map<string, object>;
  /** Goes to a page of the server as a browser does, signs in as `ada`, and returns the URL to which it is sent back. */
  visit(page: string | URL): Promise<URL>;
}

const scopes = ["meanwhile:read", "meanwhile:call", "meanwhile:admin"];
/** What `serve` adds to `exp`. */
const toleranceSeconds = 60;

/** An authorization server with PKCE, resource indicators, dynamic registration and client ID metadata documents. */
export async function startOidcServer(): Promise<OidcServer> {
  const server = http.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const grants: string[] = [];
  const clientDocuments = new Map<string, object>();
  const state = { acceptedSeconds: 3_600 };
  const { default: Provider } = (await import("oidc-provider" as string)) as { readonly default: ProviderClass };
  const provider = new Provider(issuer, {
    jwks: {
      keys: [
        {
          ...generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" }),
          kid: "one",
          alg: "RS256",
          use: "sig",
        },
      ],
    },
    ttl: { Interaction: 600, Grant: 600, Session: 600 },
    cookies: { keys: ["a key of this test"] },
    scopes: ["openid", "offline_access", ...scopes],
    responseTypes: ["code"],
    pkce: { required: () => true },
    issueRefreshToken: () => true,
    clientBasedCORS: () => true,
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    fetch: async (url: string | URL) =>
      Response.json(clientDocuments.get(String(url)) ?? {}, { status: clientDocuments.has(String(url)) ? 200 : 404 }),
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: scopes.join(" "),
          audience: resource,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
    formats: {
      customizers: {
        jwt: (_context: unknown, _token: unknown, { payload }: { readonly payload: { iat: number; exp: number } }) => {
          payload.exp = payload.iat + state.acceptedSeconds - toleranceSeconds;
        },
      },
    },
    /** Consent to all that the client asks for. */
    loadExistingGrant: async (context: {
      readonly oidc: {
        readonly client: { readonly clientId: string };
        readonly session: { readonly accountId: string };
        readonly params: { readonly resource?: string };
      };
    }) => {
      const { client, session, params } = context.oidc;
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope(["openid", "offline_access", ...scopes].join(" "));
      if (params.resource !== undefined) grant.addResourceScope(params.resource, scopes.join(" "));
      await grant.save();
      return grant;
    },
    interactions: { url: () => "/sign-in" },
  });
  provider.on("grant.success", ({ oidc }) => void grants.push(String(oidc.params.grant_type)));
  const answer = provider.callback();
  server.on("request", (request, response) => {
    if (request.url !== "/sign-in") return answer(request, response);
    void provider.interactionFinished(request, response, { login: { accountId: "ada" }, consent: {} });
  });
  cleanUp(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(state, {
    issuer,
    grants,
    clientDocuments,
    visit: (page: string | URL) => visit(new URL(page), issuer),
  });
}

/** Follows redirects with cookies as long as they stay at the server. */
async function visit(page: URL, issuer: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let at = page;
  for (let turn = 0; at.origin === issuer; turn++) {
    if (turn > 10) throw new Error(`too many redirects, at ${at.href}`);
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(at, { redirect: "manual", headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (location === null) throw new Error(`${at.href} answered ${response.status}: ${await response.text()}`);
    at = new URL(location, at);
  }
  return at;
}
