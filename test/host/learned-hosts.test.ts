import { readFileSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { homeAt } from "../../src/paths.ts";
import { LearnedHosts } from "../../src/runtime/learned-hosts.ts";
import { withLock } from "../../src/system/lock-file.ts";
import { FakeClock, settled, turns } from "../helpers/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";

const day = 24 * 60 * 60 * 1_000;

function giveUp(hosts: LearnedHosts, name = "my-host", ageMs = 10_000): Promise<void> {
  return hosts.noteGivenUp(name, "stdio", [{ ageMs, isSilent: true }]);
}

function open(clock = new FakeClock(), home = homeAt({ MEANWHILE_HOME: temporaryFolder() })) {
  const hosts = new LearnedHosts({ home, project: "p", clock, log: silentLog });
  const learn = async (name: string, ms = 10_000) => {
    for (let call = 0; call < 3; call++) await giveUp(hosts, name, ms);
  };
  return { clock, home, hosts, learn };
}

describe("a learned limit", () => {
  test("holds for 30 days", async () => {
    const { clock, hosts, learn } = open();
    await learn("my-host");
    clock.advance(30 * day);
    expect(hosts.limitOf("my-host", "stdio")?.limitMs).toBe(10_000);
    clock.advance(1);
    expect(hosts.limitOf("my-host", "stdio")).toBeUndefined();
    expect(hosts.list()).toEqual([]);
  });

  test("is kept in the home, readable by its user alone, and so are the calls before it", async () => {
    const { clock, home, hosts } = open();
    await giveUp(hosts);
    await giveUp(hosts);
    await giveUp(open(clock, home).hosts);
    clock.advance(2_000);
    expect(hosts.limitOf("my-host", "stdio")?.limitMs).toBe(10_000);
    expect(statSync(home.hostsFile).mode & 0o077).toBe(0);
  });

  test.each(["__proto__", "constructor", "toString"])("may be that of a host that calls itself %s", async (name) => {
    const { hosts, learn } = open();
    expect(hosts.limitOf(name, "stdio")).toBeUndefined();
    await learn(name);
    expect(hosts.limitOf(name, "stdio")?.limitMs).toBe(10_000);
    expect(hosts.limitOf("other", "stdio")).toBeUndefined();
    expect(await hosts.forget(name)).toHaveLength(1);
    expect(hosts.limitOf(name, "stdio")).toBeUndefined();
  });
});

describe("while another process changes the file", () => {
  test.each([
    ["a call that is given up waits", (hosts: LearnedHosts) => giveUp(hosts), ["first", "my-host", "theirs"]],
    ["`forget` waits", (hosts: LearnedHosts) => hosts.forget("first"), ["theirs"]],
  ])("%s, so no change is lost", async (_title, change, names) => {
    const { clock, home, hosts, learn } = open();
    await learn("first");
    let changed: Promise<unknown> | undefined;
    await withLock(`${home.hostsFile}.lock`, clock, async () => {
      const { p } = JSON.parse(readFileSync(home.hostsFile, "utf8"));
      changed = change(hosts);
      await turns();
      writeFileSync(home.hostsFile, JSON.stringify({ p: { ...p, theirs: p.first } }));
    });
    if (changed !== undefined) await settled(clock, changed);
    const { p } = JSON.parse(readFileSync(home.hostsFile, "utf8"));
    expect(Object.keys(p).sort()).toEqual(names);
  });
});

test("of many hosts the last hundred are kept", async () => {
  const { hosts, learn } = open();
  for (let host = 0; host < 103; host++) await learn(`host-${host}`);
  expect(hosts.list().map(({ host }) => host)).toEqual(Array.from({ length: 100 }, (_, at) => `host-${at + 3}`));
});

test.each(["", "{", "[]", "null", '{"p":7}', '{"p":{"my-host":{"stdio":{"agesMs":"x","learned":{"limitMs":-1}}}}}'])(
  "a file that holds %j is read as nothing learned",
  async (text) => {
    const { home, hosts, learn } = open();
    writeFileSync(home.hostsFile, text);
    expect(hosts.limitOf("my-host", "stdio")).toBeUndefined();
    await learn("my-host");
    expect(hosts.limitOf("my-host", "stdio")?.limitMs).toBe(10_000);
  },
);
