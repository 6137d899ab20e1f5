import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { signIn } from "../../../../src/gateway/oauth/sign-in.ts";
import { createWorkerName } from "../../../../src/system/worker-name.ts";
import { cleanUp } from "../../../helpers/home.ts";
import { ask, never, openSignIn, personAt } from "../../../helpers/oauth.ts";

const isRoot = process.getuid?.() === 0;
const hour = 3600_000;

/** Somebody has signed in; `file` holds the tokens, and beside it lies who we are at the authorization server. */
async function signedIn() {
  const opened = await openSignIn();
  await signIn(opened.upstream, personAt(), never);
  const { upstreamsFolder } = opened.home;
  const files = readdirSync(upstreamsFolder).map((name) => path.join(upstreamsFolder, name));
  const file = files.find((it) => readFileSync(it, "utf8").includes("accessToken")) ?? expect.fail("nothing is kept");
  return { ...opened, file };
}

describe("a file of tokens that is not its user's alone is not used", () => {
  const cases: Record<string, (file: string) => void> = {
    "others may read it": (file) => chmodSync(file, 0o644),
    "a group may read it": (file) => chmodSync(file, 0o640),
    "others may write its folder": (file) => chmodSync(path.dirname(file), 0o777),
    ...(isRoot && { "it is another user's": (file) => chownSync(file, 65_534, 65_534) }),
  };

  test.each(Object.entries(cases))("%s", async (_, change) => {
    const { file, authorizer, upstream, world } = await signedIn();
    change(file);
    const said = await authorizer.header().catch((error: unknown) => error);
    expect(said).toMatchObject({ name: "ConnectionError", isUnsent: true });
    expect((said as Error).message).toMatch(
      /^The tokens for notes are not used, .*`meanwhile upstreams login notes` says more\.$/,
    );
    const before = world.seen.length;
    await expect(signIn(upstream, personAt(), never)).rejects.toMatchObject({ code: "HOME_UNUSABLE" });
    expect(world.seen).toHaveLength(before);
  });
});

test("a damaged file counts as none", async () => {
  const opened = await signedIn();
  for (const text of ["", "{", "[]", '"x"', '{"issuer":1}', '{"tokens":{"accessToken":"x"}}']) {
    writeFileSync(opened.file, text);
    expect(await opened.authorizer.header()).toBeUndefined();
    await expect(ask(opened)).rejects.toThrow("notes wants you to sign in");
  }
  await signIn(opened.upstream, personAt(), never);
  expect(await ask(opened)).toBe(200);
});

test("a lock that was left behind holds nobody up", async () => {
  const { file, authorizer, clock } = await signedIn();
  const lock = file.replace(/json$/, "lock");
  const first = await authorizer.header();
  const [host, boot, , start, ...rest] = createWorkerName().split("|");
  writeFileSync(lock, [host, boot, 2 ** 22 + 1, start, ...rest].join("|"));
  clock.pass(hour);
  const second = await authorizer.header();
  // Of whom nobody knows whether they live, their time is over at some point.
  writeFileSync(lock, "somebody elsewhere");
  utimesSync(lock, new Date(0), new Date(0));
  clock.pass(hour);
  const third = await authorizer.header();
  expect(new Set([first, second, third]).size).toBe(3);
  expect(readdirSync(path.dirname(lock)).filter((name) => !name.endsWith(".json"))).toEqual([]);
});

test("two processes that need a new token at once have one between them, and lose no refresh token", async () => {
  const { home, world } = await signedIn();
  const start = async () => {
    const program = path.resolve(import.meta.dirname, "../../../fixtures/gateway/oauth-asker.ts");
    const child = fork(program, [world.upstream], { env: { ...process.env, MEANWHILE_HOME: home.folder } });
    cleanUp(() => child.kill("SIGKILL"));
    await once(child, "message");
    return child;
  };
  const children = await Promise.all([start(), start(), start()]);
  const headerOf = async (child: ChildProcess, ms: number) => {
    const answer = once(child, "message");
    child.send(ms);
    return ((await answer) as [{ header?: string; error?: string }])[0];
  };
  const rounds = 4;
  for (let round = 1; round <= rounds; round++) {
    const answers = await Promise.all(children.map(async (child) => await headerOf(child, round * hour)));
    const [{ header } = {}] = answers;
    expect(answers).toEqual(children.map(() => ({ header })));
    const headers = { authorization: header ?? "-" };
    expect((await fetch(world.upstream, { method: "POST", body: "{}", headers })).ok).toBe(true);
  }
  expect(world.reuses).toBe(0);
  expect(world.countOf("/token", "refresh_token")).toBe(rounds);
});
