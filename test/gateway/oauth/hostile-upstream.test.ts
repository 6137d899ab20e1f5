import http from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { openReach } from "../../../src/gateway/oauth/oauth-reach.ts";
import { askOAuth } from "../../../src/gateway/oauth/oauth-request.ts";
import { signIn } from "../../../src/gateway/oauth/sign-in.ts";
import { configured, type OAuthWorld, reply } from "../../fixtures/gateway/oauth-server.ts";
import { cleanUp } from "../../helpers/home.ts";
import { ask, never, openSignIn, personAt } from "../../helpers/oauth.ts";

/** Somebody whom nobody has reason to speak to. */
async function startBystander() {
  const seen: string[] = [];
  const server = http.createServer((request, response) => {
    seen.push(request.url ?? "");
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp(() => server.close());
  return { seen, port: (server.address() as AddressInfo).port };
}

/** What a person reads of a sign-in that failed; they were sent to no page. */
async function refusalOf(change: (world: OAuthWorld) => void, oauth?: Parameters<typeof openSignIn>[0]) {
  const { world, upstream } = await openSignIn(oauth);
  change(world);
  const opened: URL[] = [];
  const person = { ...personAt(), openPage: async (url: URL) => opened.push(url) > 0 };
  const error = await signIn(upstream, person, never).then(
    () => expect.fail("it should have been refused"),
    (thrown: unknown) => thrown as Error,
  );
  expect(error).toMatchObject({ name: "SignInError" });
  expect(opened).toEqual([]);
  expect(world.countOf("/token")).toBe(0);
  return error.message;
}

const says = (server: Record<string, unknown>) => (world: OAuthWorld) => {
  world.says.server = server;
};

describe("metadata", () => {
  test.each([
    "javascript:alert(1)",
    "file:///etc/passwd",
    "http://192.0.2.1/a",
    "ftp://127.0.0.1/",
    "https://me:pw@[::1]/",
    "no url",
  ])("with the page %s is refused, and nothing is opened", async (page) => {
    expect(await refusalOf(says({ authorization_endpoint: page }))).toMatch(
      /^notes names .* as its authorization_endpoint, (which is no URL|with a password in it|and only https)/,
    );
  });

  test.each(["token_endpoint", "registration_endpoint", "device_authorization_endpoint"])(
    "with a plain %s elsewhere is refused",
    async (field) => {
      expect(await refusalOf(says({ [field]: "http://192.0.2.1/x" }))).toContain(`as its ${field}`);
    },
  );

  test("of a device's page is held to the same", async () => {
    const change = (world: OAuthWorld) =>
      world.instead.set("/device", (_, response) =>
        reply(response, 200, { device_code: "x", user_code: "y", verification_uri: "javascript:alert(1)" }),
      );
    expect(await refusalOf(change, { grant: "device" })).toContain("and only https is spoken there");
  });

  test("of another server's name is not believed", async () => {
    expect(await refusalOf(says({ issuer: "https://honest.example" }))).toContain(
      "says that it is https://honest.example; that is not believed",
    );
  });

  test.each(["https://bank.example/mcp", "ORIGIN/mc", "ORIGIN/mcp/deeper", "ORIGIN/mcp#x", "mcp"])(
    "for the resource %s asks for no token",
    async (resource) => {
      const change = (world: OAuthWorld) => {
        world.says.resource = { resource: resource.replace("ORIGIN", new URL(world.upstream).origin) };
      };
      expect(await refusalOf(change)).toMatch(/^notes says that it is .* which is another place/);
    },
  );

  test.each([undefined, ["plain"], "S256 "])("with %s for PKCE sends nobody anywhere", async (methods) => {
    expect(await refusalOf(says({ code_challenge_methods_supported: methods }))).toContain("PKCE");
  });

  test("in a file, by the upstream's challenge, is not read", async () => {
    const change = (world: OAuthWorld) => {
      world.says.challenge = 'Bearer resource_metadata="file:///etc/passwd"';
    };
    expect(await refusalOf(change)).toContain("as the place of its metadata, and only https");
  });

  test("without end, too deep, or that leads in circles or elsewhere, ends in a sentence", async () => {
    const { seen, port } = await startBystander();
    const at = "/.well-known/oauth-authorization-server";
    const flood = (world: OAuthWorld) =>
      world.instead.set(at, (_, response) => {
        const more = () => void (response.destroyed || response.write("x".repeat(65_536), more));
        more();
      });
    expect(await refusalOf(flood)).toContain("larger than 262144 bytes");
    const deep = (world: OAuthWorld) =>
      world.instead.set(at, (_, response) => response.end(`{"issuer":${"[".repeat(5_000)}${"]".repeat(5_000)}}`));
    expect(await refusalOf(deep)).toContain("says nothing of how that is done");
    const circle = (world: OAuthWorld) =>
      world.instead.set(at, (_, response) => response.writeHead(302, { location: at }).end());
    expect(await refusalOf(circle)).toContain("leads in circles");
    const elsewhere = (world: OAuthWorld) =>
      world.instead.set(at, (_, response) => response.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end());
    expect(await refusalOf(elsewhere)).toContain("leads elsewhere");
    expect(seen).toEqual([]);
  });
});

describe("an upstream that is not on this machine leads to nothing on it", () => {
  const refused = /^notes names \S+ to sign in with, which leads into a private network or to this machine/;
  const near = [
    "https://127.0.0.1/",
    "https://localhost/",
    "https://a.localhost/",
    "https://[::1]/",
    "https://[::ffff:7f00:1]/",
    "https://2130706433/",
    "http://127.0.0.1:8080/",
  ];
  const internal = [
    "https://10.0.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/",
    "https://[fd00::1]/",
    "https://0/",
  ];

  test("nor into a private network, unless it is there itself", async () => {
    const [far, inside, here] = await Promise.all(
      ["https://1.1.1.1/mcp", "https://10.9.9.9/mcp", "http://127.0.0.1:1/mcp"].map(
        async (url) => await openReach("notes", new URL(url)),
      ),
    );
    for (const url of [...near, ...internal]) expect(() => far?.parse(url, "x"), url).toThrow(refused);
    for (const url of near) expect(() => inside?.parse(url, "x"), url).toThrow(refused);
    for (const url of internal) expect(inside?.parse(url, "x").href).toMatch(/^https/);
    for (const url of [...near, ...internal]) expect(here?.parse(url, "x").href).toMatch(/^http/);
    for (const reach of [far, inside, here]) {
      expect(reach?.parse("https://8.8.8.8/", "x").host).toBe("8.8.8.8");
      expect(() => reach?.parse("http://8.8.8.8/", "x")).toThrow("only https");
    }
  });

  test("by a name that leads here, too", async () => {
    const { seen, port } = await startBystander();
    const far = await openReach("notes", new URL("https://1.1.1.1/mcp"));
    await expect(askOAuth(new URL(`http://localhost:${port}/`), far, {})).rejects.toThrow(refused);
    const named = await openReach("notes", new URL("https://notes.invalid/mcp"));
    await expect(askOAuth(new URL(`http://localhost:${port}/`), named, {})).rejects.toThrow(refused);
    expect(seen).toEqual([]);
  });

  test("and gets no token without encryption", async () => {
    const { upstream } = await openSignIn();
    await expect(signIn({ ...upstream, url: "http://192.0.2.1/mcp" }, personAt(), never)).rejects.toThrow(
      "notes wants a token, and is reached without encryption; use its https address.",
    );
  });
});

describe("a browser that comes back", () => {
  const comesBack = async (answer: Record<string, string>, says: Record<string, unknown> = {}) => {
    const { world, upstream } = await openSignIn();
    world.says.server = says;
    world.instead.set("/authorize", ({ form }, response) => {
      const back = new URL(form.get("redirect_uri") ?? "");
      for (const [name, value] of Object.entries({ state: form.get("state") ?? "", ...answer }))
        back.searchParams.set(name, value);
      response.writeHead(302, { location: back.href }).end();
    });
    const error = await signIn(upstream, personAt(), never).catch((thrown: unknown) => thrown as Error);
    expect(world.countOf("/token")).toBe(0);
    return error?.message;
  };

  test("from another authorization server brings a code that is sent to nobody", async () => {
    const other =
      "The browser came back from another authorization server than the one that notes names, so nothing was sent on.";
    expect(await comesBack({ code: "x", iss: "https://honest.example" })).toBe(other);
    expect(await comesBack({ code: "x" })).toBe(other);
    const unsaid = { authorization_response_iss_parameter_supported: undefined };
    expect(await comesBack({ code: "x", iss: "https://honest.example" }, unsaid)).toBe(other);
    // Its words are not shown either.
    expect(await comesBack({ error: "x", error_description: "call 555-1234", iss: "https://evil.example" })).toBe(
      other,
    );
  });

  test("with an error says it, without what a screen would obey", async () => {
    const unsaid = { authorization_response_iss_parameter_supported: undefined };
    const said = await comesBack(
      { error: "access_denied", error_description: "no\u001b]0;pwned\u0007 \u202eway\n\u009b2J" },
      unsaid,
    );
    expect(said).toMatch(/^The authorization server of notes says access_denied: no ]0;pwned .way 2J\.$/);
    expect(said).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });
});

describe("a token endpoint", () => {
  const answers = async (answer: Parameters<OAuthWorld["instead"]["set"]>[1]) => {
    const opened = await openSignIn({ ...configured, grant: "client-credentials" });
    opened.world.instead.set("/token", answer);
    const error = await ask(opened).catch((thrown: unknown) => thrown as Error);
    return (error as Error).message;
  };

  test.each([
    {},
    { access_token: "" },
    { access_token: "a\r\nx: y" },
    { access_token: "é" },
    { access_token: 1 },
    { access_token: "x".repeat(20_000) },
  ])("that gives %o has given no token", async (body) => {
    expect(await answers((_, response) => reply(response, 200, { token_type: "Bearer", ...body }))).toContain(
      "without a token that can be sent",
    );
  });

  test("that gives a token of another kind, or fails, is said to", async () => {
    expect(await answers((_, response) => reply(response, 200, { access_token: "x", token_type: "DPoP" }))).toContain(
      "of a kind that is not known",
    );
    expect(await answers((_, response) => reply(response, 502, "no"))).toBe(
      "The authorization server of notes answered 502.",
    );
  });

  test("that repeats secrets in its words does not get them shown", async () => {
    const said = await answers(({ headers }, response) => {
      const secret = Buffer.from((headers.authorization ?? "").slice(6), "base64").toString();
      reply(response, 401, {
        error: "invalid_client",
        error_description: `${configured.clientSecret} is wrong (${secret.length})`,
      });
    });
    expect(said).toMatch(/^The authorization server of notes says invalid_client: … is wrong \(\d+\)\.$/);
  });

  test("that leads elsewhere gets nobody's secret there", async () => {
    const { seen, port } = await startBystander();
    expect(
      await answers((_, response) => response.writeHead(307, { location: `http://127.0.0.1:${port}/` }).end()),
    ).toContain("leads elsewhere");
    expect(seen).toEqual([]);
  });
});

describe("an upstream that names another authorization server later", () => {
  test("gets no refresh token there: tokens are exchanged where they came from", async () => {
    const { seen, port } = await startBystander();
    const opened = await openSignIn();
    const { world, upstream, clock } = opened;
    await signIn(upstream, personAt(), never);
    world.says.resource = { authorization_servers: [`http://127.0.0.1:${port}`] };
    clock.pass(3600_000);
    world.revoke();
    expect(await ask(opened)).toBe(200);
    expect(seen).toEqual([]);
  });

  test("gets no client's secret there without a person's word", async () => {
    const [opened, evil] = [
      await openSignIn({ ...configured, grant: "client-credentials" }),
      (await openSignIn()).world,
    ];
    const { world, clock } = opened;
    expect(await ask(opened)).toBe(200);
    world.says.resource = { authorization_servers: [evil.issuer] };
    world.revoke();
    world.instead.set("/token", (_, response) => reply(response, 400, { error: "invalid_grant" }));
    clock.pass(60_000);
    await expect(ask(opened)).rejects.toThrow(
      "notes names another authorization server than before; if that is right, sign in again: run `meanwhile upstreams login notes`",
    );
    expect(evil.countOf("/token")).toBe(0);
  });
});
