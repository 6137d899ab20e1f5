import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { DaemonHome } from "../../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { startGuardedHttp, startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../../helpers/wire.ts";
import { type OidcServer, startOidcServer } from "./oidc-server.ts";

const whoAmI = `import { defineCommand } from "meanwhile";
export default defineCommand({
  summary: "Names the caller",
  effects: "read",
  run: (_, { caller: { kind, id, client, scopes } }) => ({ kind, id, client, scopes }),
});`;
const waitLong = `import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Waits",
  input: z.object({ seconds: z.number() }),
  async run({ seconds }) {
    await sleep(seconds * 1000);
    return { waited: seconds };
  },
});`;
const redirectUrl = "http://127.0.0.1:9/callback";

async function open() {
  const oidc = await startOidcServer();
  const cwd = writeFiles(temporaryFolder(), {
    "commands/who/am-i.ts": whoAmI,
    "commands/wait/long.ts": waitLong,
    "meanwhile.config.json": JSON.stringify({ auth: { issuers: [{ issuer: oidc.issuer }] } }),
  });
  const { url } = await startGuardedHttp([], { cwd });
  return { oidc, url: new URL(url) };
}

/** What an SDK keeps for a user, in memory. `page` is where the user is sent to. */
function createProvider(clientMetadataUrl?: string) {
  const kept: Record<string, unknown> = {};
  return {
    page: undefined as URL | undefined,
    kept,
    redirectUrl,
    ...(clientMetadataUrl !== undefined && { clientMetadataUrl }),
    clientMetadata: {
      client_name: "a client",
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      application_type: "native",
    },
    clientInformation: () => kept.client as never,
    saveClientInformation(client: unknown) {
      kept.client = client;
    },
    tokens: () => kept.tokens as never,
    saveTokens(tokens: unknown) {
      kept.tokens = tokens;
    },
    redirectToAuthorization(url: URL) {
      this.page = url;
    },
    saveCodeVerifier(verifier: string) {
      kept.verifier = verifier;
    },
    saveDiscoveryState(state: unknown) {
      kept.discovery = state;
    },
    discoveryState: () => kept.discovery as never,
    codeVerifier: () => kept.verifier as string,
  };
}

interface Transport {
  finishAuth(code: string, issuer?: string): Promise<void>;
}

/** Signs in with the page that the client was sent to, and returns the parameters of the request for it. */
async function signIn(oidc: OidcServer, page: URL | undefined, transport: Transport): Promise<URLSearchParams> {
  if (page === undefined) throw new Error("the client was sent to no page");
  const { searchParams } = await oidc.visit(page);
  await transport.finishAuth(searchParams.get("code") ?? "", searchParams.get("iss") ?? undefined);
  return page.searchParams;
}

const info = { name: "a client", version: "1" };

const sdks = {
  v1: { create: () => new ClientV1(info), connectTo: (url: URL, options: object) => new TransportV1(url, options) },
  v2: { create: () => new ClientV2(info), connectTo: (url: URL, options: object) => new TransportV2(url, options) },
} as const;

/** A client of an SDK whose user has signed in, with the parameters of its authorization request. */
async function connect(sdk: keyof typeof sdks, { oidc, url }: Awaited<ReturnType<typeof open>>, metadataUrl?: string) {
  const { create, connectTo } = sdks[sdk];
  const authProvider = createProvider(metadataUrl);
  const transport = connectTo(url, { authProvider });
  await expect(create().connect(transport as never)).rejects.toThrow(/Unauthorized/);
  const asked = Object.fromEntries(await signIn(oidc, authProvider.page, transport));
  const client = create() as ClientV1;
  await client.connect(connectTo(url, { authProvider }) as never);
  onTestFinished(() => client.close());
  const whoAmI = async () => {
    const { structuredContent } = await client.callTool({ name: "who_am_i", arguments: {} });
    return (structuredContent as { readonly data: { readonly id: string; readonly client: string } }).data;
  };
  return { client, asked, whoAmI };
}

describe.each(Object.keys(sdks) as (keyof typeof sdks)[])("the SDK's client %s", (sdk) => {
  test("registers itself, signs its user in and calls a tool", async () => {
    const server = await open();
    const { asked, whoAmI } = await connect(sdk, server);
    expect(asked).toMatchObject({ resource: server.url.href, code_challenge_method: "S256" });
    expect(asked.scope?.split(" ")).toEqual(expect.arrayContaining(["meanwhile:read", "meanwhile:call"]));
    const scopes = ["meanwhile:read", "meanwhile:call"];
    const caller = await whoAmI();
    expect(caller).toMatchObject({ kind: "user", id: `${server.oidc.issuer}#sub:ada`, scopes });
    // Another host of the same person, and the same host after it has registered again.
    const again = await (await connect(sdk, server)).whoAmI();
    expect(again.id).toBe(caller.id);
    expect(again.client).not.toBe(caller.client);
  });

  test("is known by its metadata document", async () => {
    const server = await open();
    const id = "https://client.example/metadata.json";
    server.oidc.clientDocuments.set(id, { client_id: id, ...createProvider().clientMetadata });
    const { asked, whoAmI } = await connect(sdk, server, id);
    expect(asked.client_id).toBe(id);
    expect(await whoAmI()).toMatchObject({ client: id });
  });

  test("refreshes its token when the server no longer accepts it", async () => {
    const server = await open();
    server.oidc.acceptedSeconds = 2;
    const { whoAmI } = await connect(sdk, server);
    await expect
      .poll(async () => (await whoAmI()) && server.oidc.grants, { timeout: 20_000 })
      .toContain("refresh_token");
    expect(server.oidc.grants[0]).toBe("authorization_code");
  });
});

test("a task goes on when the token of its user expires, and the refreshed token finds it", async () => {
  const server = await open();
  server.oidc.acceptedSeconds = 2;
  const { client } = await connect("v1", server);
  const stream = client.experimental.tasks.callToolStream(
    { name: "wait_long", arguments: { seconds: 6 } },
    CallToolResultSchema,
    { task: { ttl: 60_000 } },
  );
  const types: string[] = [];
  for await (const message of stream) {
    types.push(message.type);
    if (message.type === "result") expect(message.result.structuredContent).toMatchObject({ data: { waited: 6 } });
  }
  expect(types.at(0)).toBe("taskCreated");
  expect(types.at(-1)).toBe("result");
  expect(server.oidc.grants).toContain("refresh_token");
});

test("our own client signs its user in from the terminal, and calls a tool through `wrap`", async () => {
  const { oidc, url } = await open();
  const home = new DaemonHome();
  const place = { cwd: home.cwd, env: { MEANWHILE_HOME: home.home } };
  const login = startMeanwhile(["wrap", "--login", "--url", url.href], place);
  const page = await waitFor(
    () => new RegExp(`${oidc.issuer}\\S+`).exec(login.stderr())?.[0],
    () => `no page was shown: ${login.stderr()}`,
  );
  // The browser, which is sent back to the terminal's own page.
  expect((await fetch(await oidc.visit(page))).status).toBe(200);
  expect({ code: await login.exited, printed: login.stderr() }).toMatchObject({ code: 0 });
  const front = startMeanwhile(["wrap", "--url", url.href, "--name", "tools"], place);
  const client = new WireClient(overPipes(front.child), { revision: "2025-11-25" });
  onTestFinished(() => client.close());
  await client.begin();
  const result = await client.call("who_am_i");
  expect(JSON.stringify(result)).toContain(`${oidc.issuer}#sub:ada`);
});
