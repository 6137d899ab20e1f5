import { statSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { homeAt } from "../../src/paths.ts";
import { LearnedHosts } from "../../src/runtime/learned-hosts.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";

const day = 24 * 60 * 60 * 1_000;

function open(clock = new FakeClock(), home = homeAt({ MEANWHILE_HOME: temporaryFolder() })) {
  const hosts = new LearnedHosts({ home, project: "p", clock, log: silentLog });
  const learn = (name: string, ms = 10_000) => {
    for (let call = 0; call < 3; call++) hosts.noteGivenUp(name, "stdio", ms);
  };
  return { clock, home, hosts, learn };
}

describe("a learned limit", () => {
  test("holds for 30 days", () => {
    const { clock, hosts, learn } = open();
    learn("my-host");
    clock.advance(30 * day);
    expect(hosts.limitOf("my-host", "stdio")?.limitMs).toBe(10_000);
    clock.advance(1);
    expect(hosts.limitOf("my-host", "stdio")).toBeUndefined();
    expect(hosts.list()).toEqual([]);
  });

  test("is kept in the home, readable by its user alone, and so are the calls before it", () => {
    const { clock, home, hosts } = open();
    hosts.noteGivenUp("my-host", "stdio", 10_000);
    hosts.noteGivenUp("my-host", "stdio", 10_000);
    open(clock, home).hosts.noteGivenUp("my-host", "stdio", 10_000);
    clock.advance(2_000);
    expect(hosts.limitOf("my-host", "stdio")?.limitMs).toBe(10_000);
    expect(statSync(home.hostsFile).mode & 0o077).toBe(0);
  });

  test.each(["__proto__", "constructor", "toString"])("may be that of a host that calls itself %s", (name) => {
    const { hosts, learn } = open();
    expect(hosts.limitOf(name, "stdio")).toBeUndefined();
    learn(name);
    expect(hosts.limitOf(name, "stdio")?.limitMs).toBe(10_000);
    expect(hosts.limitOf("other", "stdio")).toBeUndefined();
    expect(hosts.forget(name)).toHaveLength(1);
    expect(hosts.limitOf(name, "stdio")).toBeUndefined();
  });
});

test("of many hosts the last hundred are kept", () => {
  const { hosts, learn } = open();
  for (let host = 0; host < 103; host++) learn(`host-${host}`);
  expect(hosts.list().map(({ host }) => host)).toEqual(Array.from({ length: 100 }, (_, at) => `host-${at + 3}`));
});

test.each(["", "{", "[]", "null", '{"p":7}', '{"p":{"my-host":{"stdio":{"agesMs":"x","learned":{"limitMs":-1}}}}}'])(
  "a file that holds %j is read as nothing learned",
  (text) => {
    const { home, hosts, learn } = open();
    writeFileSync(home.hostsFile, text);
    expect(hosts.limitOf("my-host", "stdio")).toBeUndefined();
    learn("my-host");
    expect(hosts.limitOf("my-host", "stdio")?.limitMs).toBe(10_000);
  },
);
