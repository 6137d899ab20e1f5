import { expect, onTestFinished, test } from "vitest";
import { startOAuthWorld } from "../fixtures/gateway/oauth-server.ts";
import { DaemonHome } from "../helpers/daemon.ts";
import { cleanUp } from "../helpers/home.ts";
import { startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../helpers/wire.ts";

/** A person types this, and opens the page that is shown with a browser of their own. */
async function signInBy(words: readonly string[], home: DaemonHome) {
  const started = startMeanwhile(words, { cwd: home.cwd, env: { MEANWHILE_HOME: home.home } });
  const page = await waitFor(
    () => /http:\S+\/authorize\S+/.exec(started.stderr())?.[0],
    () => `no page was shown: ${started.stderr()}`,
  );
  expect((await fetch(page)).status).toBe(200);
  expect({ code: await started.exited, said: started.stderr() }).toMatchObject({ code: 0 });
  expect(started.stdout()).toBe("");
}

/** An upstream that wants tokens, and a session on it whose client greets by itself. */
async function openSession(toWords: (url: string) => string[], config: (url: string) => object | undefined) {
  const world = await startOAuthWorld();
  cleanUp(() => world.close());
  // Nobody has a browser here that could be opened: where there is no other way, the page is shown.
  world.says.server = { device_authorization_endpoint: undefined };
  const said = config(world.upstream);
  const home = new DaemonHome(said === undefined ? {} : { config: said });
  const front = startMeanwhile(toWords(world.upstream), { cwd: home.cwd, env: { MEANWHILE_HOME: home.home } });
  const revision = "2025-06-18";
  const client = new WireClient(overPipes(front.child), { revision });
  onTestFinished(() => client.close());
  const greet = async () => {
    const clientInfo = { name: "a client", version: "1" };
    return await client.request("initialize", { protocolVersion: revision, capabilities: {}, clientInfo });
  };
  return { world, home, client, greet };
}

test("a wrapped server that wants a token says what to type, and after that works in the same session", async () => {
  const { world, home, client, greet } = await openSession(
    (url) => ["wrap", "--url", url, "--name", "notes"],
    () => undefined,
  );
  const words = `wrap --login --url ${world.upstream}`;
  expect((await greet()).error?.message).toContain(
    `notes wants you to sign in: run \`meanwhile ${words}\`, then try again.`,
  );
  await signInBy(words.split(" "), home);
  expect((await greet()).result).toMatchObject({ serverInfo: { name: "notes" } });
  expect(await client.call("read_note")).toMatchObject({ content: [{ text: "a note" }] });
});

test("one that a config names is signed in to by its name", async () => {
  const { home, client, greet } = await openSession(
    () => ["serve", "--no-bundled"],
    (url) => ({ upstreams: { notes: { url }, local: { command: "true" } } }),
  );
  const first = await greet();
  if (first.error !== undefined) expect(first.error.message).toContain("upstreams login notes");
  await signInBy(["upstreams", "login", "notes"], home);
  await expect.poll(async () => (await greet()).error, { timeout: 50_000 }).toBeUndefined();
  await expect
    .poll(async () => JSON.stringify(await client.request("tools/list", {})), { timeout: 50_000 })
    .toContain("read_note");
  const refusals = { other: "There is no upstream other here", local: "local is started by a command" };
  for (const [name, words] of Object.entries(refusals)) {
    const { code, stderr } = await home.terminal("upstreams", "login", name);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(words) as string });
  }
});
