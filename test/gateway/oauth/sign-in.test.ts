import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { signIn } from "../../../src/gateway/oauth/sign-in.ts";
import { configured } from "../../fixtures/gateway/oauth-server.ts";
import { ask, never, openSignIn, personAt, tokenRequests } from "../../helpers/oauth.ts";

describe("in a browser", () => {
  test("a person signs in, and what runs already takes the token from the home", async () => {
    const opened = await openSignIn();
    const { world, home, upstream } = opened;
    await expect(ask(opened)).rejects.toMatchObject({
      message: "notes wants you to sign in: run `meanwhile upstreams login notes`, then try again.",
      isUnsent: true,
    });
    const person = personAt();
    await signIn(upstream, person, never);
    expect(await ask(opened)).toBe(200);

    const authorize = world.seen.find(({ path: at }) => at === "/authorize");
    expect(Object.fromEntries(authorize?.form ?? [])).toMatchObject({
      tenant: "1",
      response_type: "code",
      code_challenge_method: "S256",
      resource: world.upstream,
      scope: "tools offline_access",
    });
    expect(tokenRequests(world)[0]?.form.get("resource")).toBe(world.upstream);
    expect(person.said.join("")).toContain(`${world.issuer}/authorize?tenant=1&`);
    expect(person.said.at(-1)).toBe("Signed in to notes.\n");
    expect(statSync(home.upstreamsFolder).mode & 0o777).toBe(0o700);
    for (const file of readdirSync(home.upstreamsFolder))
      expect(statSync(path.join(home.upstreamsFolder, file)).mode & 0o777).toBe(0o600);
    const token = (await opened.authorizer.header())?.replace("Bearer ", "") ?? "-";
    expect(person.said.join("")).not.toContain(token);
  });

  test("the next time we are known already, and come back by the same way", async () => {
    const { world, upstream } = await openSignIn();
    await signIn(upstream, personAt(), never);
    await signIn(upstream, personAt(), never);
    expect(world.countOf("/register")).toBe(1);
    expect(world.countOf("/token", "authorization_code")).toBe(2);
  });

  test("a server that has forgotten us is told again the next time", async () => {
    const { world, upstream } = await openSignIn();
    await signIn(upstream, personAt(), never);
    world.instead.set("/token", (_, response) => response.writeHead(401).end('{"error":"invalid_client"}'));
    await expect(signIn(upstream, personAt(), never)).rejects.toThrow("invalid_client");
    world.instead.clear();
    await signIn(upstream, personAt(), never);
    expect(world.countOf("/register")).toBe(2);
  });

  test("with the client that the config names, whose secret stays there", async () => {
    const opened = await openSignIn(configured);
    const { world, home, upstream, clock } = opened;
    await signIn(upstream, personAt(), never);
    expect(await ask(opened)).toBe(200);
    clock.pass(3600_000);
    expect(await ask(opened)).toBe(200);
    expect(world.countOf("/register")).toBe(0);
    expect(tokenRequests(world).map(({ headers }) => headers.authorization?.slice(0, 6))).toEqual(["Basic ", "Basic "]);
    for (const file of readdirSync(home.upstreamsFolder))
      expect(readFileSync(path.join(home.upstreamsFolder, file), "utf8")).not.toContain("s3cret");
  });

  test("of 2025-03-26: the upstream is its own authorization server, and says nothing of itself", async () => {
    const opened = await openSignIn();
    const { world, upstream } = opened;
    const { origin } = new URL(world.upstream);
    const none = (_: unknown, response: { writeHead(status: number): { end(): void } }) =>
      response.writeHead(404).end();
    world.instead.set("/.well-known/oauth-protected-resource/mcp", none);
    world.says.challenge = "Bearer";
    // The same endpoints, at the upstream's own address.
    for (const at of ["/register", "/authorize", "/token"])
      world.instead.set(at, ({ headers, body, form, path: asked }, response) => {
        world.instead.delete(asked);
        const isPost = body !== "";
        const url = `${world.issuer}${asked}${isPost ? "" : `?${form.toString()}`}`;
        const type = headers["content-type"] ?? "";
        void fetch(
          url,
          isPost ? { method: "POST", body, headers: { "content-type": type } } : { redirect: "manual" },
        ).then(async (answer) => {
          const location = answer.headers.get("location")?.replace(/&iss=[^&]*/, "");
          response.writeHead(answer.status, location === undefined ? {} : { location }).end(await answer.text());
        });
      });
    await signIn(upstream, personAt(), never);
    expect(await ask(opened)).toBe(200);
    expect(
      world.seen.filter(({ headers, path: at }) => at === "/token" && `http://${headers.host}` === origin),
    ).toHaveLength(1);
  });

  test("a page that is open on this machine gives nothing away, and waits for the right browser", async () => {
    const { upstream, world } = await openSignIn();
    const statuses: number[] = [];
    const person = {
      ...personAt(),
      openPage: async (url: URL) => {
        const back = new URL(url.searchParams.get("redirect_uri") ?? "");
        for (const query of ["?code=evil&state=guess", "?error=access_denied", ""])
          statuses.push((await fetch(`${back.origin}/callback${query}`)).status);
        statuses.push((await fetch(back, { method: "POST" })).status, (await fetch(`${back.origin}/other`)).status);
        const page = await fetch(url);
        expect(await page.text()).toContain("You may close this window");
        expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
        return true;
      },
    };
    await signIn(upstream, person, never);
    expect(statuses).toEqual([404, 404, 404, 404, 404]);
    expect(world.countOf("/token")).toBe(1);
  });
});

describe("without a browser", () => {
  test("a person types a code elsewhere", async () => {
    const opened = await openSignIn();
    const { world, upstream } = opened;
    const said: string[] = [];
    const waits = signIn(upstream, personAt({ hasBrowser: false, said }), never);
    await expect.poll(() => world.countOf("/token"), { timeout: 50_000 }).toBeGreaterThan(1);
    expect(said.join("")).toContain(`${world.issuer}/activate`);
    expect(said.join("")).toContain("WDJB-MJHT");
    world.approve();
    await waits;
    expect(await ask(opened)).toBe(200);
  });

  test("who is told to slow down does, and a code that nobody typed ends", async () => {
    const { world, upstream, clock } = await openSignIn({ grant: "device" });
    const pauses: number[] = [];
    const slow = {
      ...clock,
      after(ms: number, done: () => void) {
        pauses.push(ms);
        return clock.after(1, done);
      },
    };
    let asked = 0;
    world.instead.set("/token", (_, response) => {
      asked += 1;
      const error = asked === 1 ? "slow_down" : asked === 3 ? "expired_token" : "authorization_pending";
      response.writeHead(400).end(JSON.stringify({ error }));
    });
    await expect(signIn({ ...upstream, clock: slow }, personAt(), never)).rejects.toThrow("expired_token");
    expect(pauses).toEqual([1_000, 6_000, 6_000]);
  });

  test("a client signs in by its secret, asked or not, in a header or in the form", async () => {
    for (const methods of [["client_secret_basic"], ["client_secret_post"]]) {
      const opened = await openSignIn({ ...configured, grant: "client-credentials" });
      const { world, clock } = opened;
      world.says.server = {
        token_endpoint_auth_methods_supported: methods,
        grant_types_supported: ["client_credentials"],
      };
      expect(await ask(opened)).toBe(200);
      clock.pass(3600_000);
      expect(await ask(opened)).toBe(200);
      expect(world.countOf("/token", "client_credentials")).toBe(2);
      expect(world.seen.filter(({ form }) => form.has("client_secret")).length).toBe(
        methods[0] === "client_secret_post" ? 2 : 0,
      );
    }
  });
});

describe("tokens end", () => {
  test("one that is about to is exchanged before it is used, once for all who wait", async () => {
    const opened = await openSignIn();
    const { world, upstream, clock, authorizer } = opened;
    await signIn(upstream, personAt(), never);
    const first = await authorizer.header();
    clock.pass(3600_000 - 30_000);
    const headers = await Promise.all(Array.from({ length: 20 }, async () => await authorizer.header()));
    expect(new Set(headers).size).toBe(1);
    expect(headers[0]).not.toBe(first);
    expect(world.countOf("/token", "refresh_token")).toBe(1);
    clock.pass(3600_000);
    expect(await ask(opened)).toBe(200);
    expect(world.reuses).toBe(0);
  });

  test("one that was taken back is exchanged when it is refused; of many requests by the first", async () => {
    const opened = await openSignIn();
    const { world, upstream, clock } = opened;
    await signIn(upstream, personAt(), never);
    world.revoke();
    clock.pass(60_000);
    expect(await Promise.all(Array.from({ length: 10 }, async () => await ask(opened)))).toEqual(Array(10).fill(200));
    expect(world.countOf("/token", "refresh_token")).toBe(1);
  });

  test("when all is taken back a person has to sign in again", async () => {
    const opened = await openSignIn();
    const { world, upstream, clock } = opened;
    await signIn(upstream, personAt(), never);
    world.revoke("all");
    clock.pass(60_000);
    for (let round = 0; round < 2; round++)
      await expect(ask(opened)).rejects.toThrow("notes wants you to sign in: run");
    expect(world.countOf("/token", "refresh_token")).toBe(1);
    await signIn(upstream, personAt(), never);
    expect(await ask(opened)).toBe(200);
  });

  test("an authorization server that is down is no reason to drop a token that still lasts", async () => {
    const { world, upstream, clock, authorizer } = await openSignIn();
    await signIn(upstream, personAt(), never);
    const header = await authorizer.header();
    world.instead.set("/token", (_, response) => response.writeHead(503).end());
    clock.pass(3600_000 - 30_000);
    expect(await authorizer.header()).toBe(header);
    clock.pass(30_000);
    await expect(authorizer.header()).rejects.toMatchObject({ isPassing: true, isUnsent: true });
    world.instead.clear();
    expect(await authorizer.header()).not.toBe(header);
  });

  test("an upstream that refuses a token as soon as it is given is not asked for another", async () => {
    const opened = await openSignIn({ ...configured, grant: "client-credentials" });
    const { world } = opened;
    expect(await ask(opened)).toBe(200);
    world.revoke();
    await expect(ask(opened)).rejects.toThrow("notes refuses the token that its authorization server has just given");
    expect(world.countOf("/token")).toBe(1);
  });
});

describe("more scopes", () => {
  test("a client asks for them once", async () => {
    const opened = await openSignIn({ ...configured, grant: "client-credentials" });
    const { world } = opened;
    expect(await ask(opened)).toBe(200);
    world.scope = "admin";
    expect(await ask(opened)).toBe(200);
    expect(tokenRequests(world).at(-1)?.form.get("scope")?.split(" ").sort()).toEqual(["admin", "tools"]);
    // It has been given what it asked for, and is refused all the same.
    world.instead.set("/mcp", (_, response) =>
      response.writeHead(403, { "www-authenticate": 'Bearer error="insufficient_scope", scope="admin"' }).end(),
    );
    await expect(ask(opened)).rejects.toThrow("notes refuses this to whoever has signed in");
    expect(world.countOf("/token")).toBe(2);
  });

  test("a person is told, and gives them with the next sign-in", async () => {
    const opened = await openSignIn();
    const { world, upstream } = opened;
    await signIn(upstream, personAt(), never);
    world.scope = "admin";
    await expect(ask(opened)).rejects.toThrow("wants you to sign in again, because this needs more");
    await signIn(upstream, personAt(), never);
    expect(await ask(opened)).toBe(200);
    const scope = world.seen.findLast(({ path: at }) => at === "/authorize")?.form.get("scope");
    expect(scope?.split(" ").sort()).toEqual(["admin", "offline_access", "tools"]);
  });
});
