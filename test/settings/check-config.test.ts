import { describe, expect, test } from "vitest";
import type { UserConfig } from "../../src/config.ts";
import { changeableBy, checkConfig } from "../../src/settings/check-config.ts";

describe("who may change a setting", () => {
  /** Every setting there is: a new one has to be put here, and is closed to tools unless somebody opens it. */
  const settings: Record<keyof UserConfig, "tool" | "person"> = {
    name: "tool",
    instructions: "tool",
    version: "person",
    project: "person",
    toolPrefix: "tool",
    logLevel: "tool",
    deferral: "tool",
    hosts: "tool",
    followUpTools: "tool",
    errorsAsCompleted: "tool",
    prompts: "tool",
    commands: "person",
    env: "person",
    bundled: "person",
    mcp: "person",
    http: "person",
    diagnose: "person",
    pack: "person",
    graceSeconds: "person",
    logFiles: "person",
    questionSeconds: "person",
    limits: "person",
    upstreams: "person",
    upstreamPrefix: "person",
  };

  test.each(Object.entries(settings))("%s: %s, and so for all that is inside it", (name, who) => {
    expect([changeableBy(name), changeableBy(`${name}.x.y`)]).toEqual([who, who]);
  });

  test("what is no setting, nobody", () => {
    for (const key of ["", "HTTP", " http", "__proto__", "constructor.name", "toString"])
      expect(changeableBy(key), key).toBe("nobody");
  });
});

describe("what is said of an upstream", () => {
  const check = (upstream: unknown) => checkConfig({ upstreams: { a: upstream } }, "the config");

  test("may be all that there is", () => {
    const policy = { share: "caller", allow: ["a*"], deny: ["b"], rerun: ["c"], long: ["d"], timeLimitSeconds: 0.5 };
    expect(() =>
      check({ command: "x", args: ["", "y"], cwd: "~", env: { A: "", B: "1\n2" }, ...policy }),
    ).not.toThrow();
    const oauth = { grant: "device", clientId: "i", clientSecret: "${S}", scopes: ["s"] };
    expect(() => check({ url: "https://${HOST}/mcp", headers: { A: "b" }, transport: "sse", oauth })).not.toThrow();
  });

  test.each<[unknown, string]>([
    ["npx x", "`upstreams.a` must be an object { command, … } or { url, … }"],
    [{}, "`upstreams.a` must be an object with either `command` or `url`, and this has neither"],
    [{ command: "x", url: "http://a" }, "and this has both"],
    [{ command: "x", headers: {} }, "`upstreams.a` must be without `headers`, which is for a `url`"],
    [{ url: "http://a", args: [] }, "`upstreams.a` must be without `args`, which is for a `command`"],
    [{ command: "x", args: "y" }, "`upstreams.a.args` must be a list of texts"],
    [{ command: "x", env: { A: 1 } }, "`upstreams.a.env.A` must be text"],
    [{ url: "http://a", headers: { A: "b\nC: d" } }, "`upstreams.a.headers.A` must be text in one line"],
    [{ url: "ftp://a" }, "`upstreams.a.url` must be an address that begins with http:// or https://"],
    [{ url: "https://me:secret@a.b" }, "without a name and password in it"],
    [{ command: "x", share: "me" }, '`upstreams.a.share` must be one of "session", "caller", "all"'],
    [{ command: "x", allow: "y" }, "`upstreams.a.allow` must be a list of tool names"],
    [{ command: "x", timeLimitSeconds: 0 }, "`upstreams.a.timeLimitSeconds` must be seconds above 0"],
    [{ url: "http://a", oauth: { grant: "x" } }, "`upstreams.a.oauth.grant` must be one of"],
    [{ command: "x", argz: [] }, "`upstreams.a.argz` is not a setting; did you mean `upstreams.a.args`?"],
  ])("%j is refused", (upstream, sentence) => {
    expect(() => check(upstream)).toThrow(sentence);
    expect(() => check(upstream)).not.toThrow("secret@");
  });

  test("has a name that can stand before a tool's", () => {
    expect(() => checkConfig({ upstreams: { "a b": { command: "x" } } }, "the config")).toThrow(
      '`upstreams` must be upstreams by names of up to 32 letters, digits, - and _, not "a b"',
    );
  });
});
