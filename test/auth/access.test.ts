import { describe, expect, test } from "vitest";
import { type AccessRule, type GuardedTool, ToolAccess } from "../../src/auth/access.ts";
import type { Authentication } from "../../src/auth/authentication.ts";
import {
  anonymous,
  appCaller,
  type CallerDetails,
  keyCaller,
  localUser,
  userCaller,
} from "../../src/command/caller.ts";

const issuer = "https://issuer.example";
const user = (details?: CallerDetails): Authentication => ({ caller: userCaller({ issuer, subject: "ada" }, details) });
const key = (details?: CallerDetails, commands?: readonly string[]): Authentication => ({
  caller: keyCaller("k1", details),
  ...(commands !== undefined && { commands }),
});
const app = (details?: CallerDetails): Authentication => ({ caller: appCaller("shop", "ada", details) });
const open = (access: readonly AccessRule[] = [], listUngranted = true) => new ToolAccess({ access, listUngranted });

const plain: GuardedTool = { toolName: "report_build" };
const scoped: GuardedTool = { toolName: "report_build", command: { scopes: ["reports"] } };
const bundled: GuardedTool = { toolName: "config_set", isBundled: true, command: { scopes: [] } };
const admin = "meanwhile:admin";

describe("the scopes of a command and those of the most specific rule are needed together", () => {
  const access = open([
    { tools: "*", scopes: ["any"] },
    { tools: "report_*", scopes: ["writer"] },
  ]);
  test.each<[string, readonly string[], unknown]>([
    ["all", ["reports", "writer"], "granted"],
    ["those of the command", ["reports"], { scopes: ["reports", "writer"] }],
    ["those of the rule", ["writer"], { scopes: ["reports", "writer"] }],
    ["those of the less specific rule", ["reports", "any"], { scopes: ["reports", "writer"] }],
  ])("a caller with %s of them", (_which, scopes, standing) => {
    for (const authentication of [user({ scopes }), key({ scopes }), app({ scopes })])
      expect(access.standingOf(authentication, scoped)).toEqual(standing);
  });
});

test("two rules of which none is more specific count together", () => {
  const equal = open([
    { tools: "report*d", scopes: ["a"] },
    { tools: "report*l*", scopes: ["b"], groups: ["ops"] },
  ]);
  expect(equal.standingOf(user({ scopes: ["a"], groups: ["ops"] }), plain)).toEqual({ scopes: ["a", "b"] });
  expect(equal.standingOf(user({ scopes: ["a", "b"] }), plain)).toBe("hidden");
});

test("a tool of a group is hidden from callers who are in none of its groups, whatever their scopes", () => {
  const access = open([{ tools: "report_*", scopes: ["s"], groups: ["ops", "dev"] }]);
  expect(access.standingOf(user({ scopes: ["s", admin] }), plain)).toBe("hidden");
  expect(access.standingOf(user({ scopes: ["s"], groups: ["sales", "dev"] }), plain)).toBe("granted");
  expect(access.standingOf(user({ groups: ["dev"] }), plain)).toEqual({ scopes: ["s"] });
});

test("the patterns of a key hide all other tools", () => {
  const access = open();
  expect(access.standingOf(key({ scopes: [admin] }, ["report_*", "x"]), plain)).toBe("granted");
  expect(access.standingOf(key({ scopes: [admin] }, ["report_read"]), plain)).toBe("hidden");
  expect(access.standingOf(key({ scopes: [admin] }, []), plain)).toBe("granted");
});

test("bundled commands need meanwhile:admin of keys and users, unless a rule matches them", () => {
  const standings = (access: ToolAccess) =>
    [user(), key(), user({ scopes: [admin] }), app(), { caller: localUser }, { caller: anonymous }].map((one) =>
      access.standingOf(one, bundled),
    );
  const needed = { scopes: [admin] };
  expect(standings(open())).toEqual([needed, needed, "granted", "granted", "granted", "hidden"]);
  expect(standings(open([{ tools: "config_*" }]))).toEqual([
    ...["granted", "granted", "granted", "granted", "granted"],
    "hidden",
  ]);
});

test("a rule whose pattern begins with a star limits bundled commands, and opens none", () => {
  for (const tools of ["*", "*_set"]) {
    const access = open([{ tools, scopes: ["any"], groups: ["staff"] }]);
    const staff = { groups: ["staff"] };
    expect(access.standingOf(user({ ...staff, scopes: ["any"] }), bundled)).toEqual({ scopes: ["any", admin] });
    expect(access.standingOf(user({ ...staff, scopes: ["any", admin] }), bundled)).toBe("granted");
    expect(access.standingOf(user({ scopes: ["any", admin] }), bundled)).toBe("hidden");
  }
});

test("a scope that includes another counts for it", () => {
  const access = open([{ tools: "*", scopes: ["meanwhile:metrics"] }]);
  expect(access.standingOf(user({ scopes: [admin] }), plain)).toBe("granted");
  expect(access.standingOf(user({ scopes: ["meanwhile:call"] }), plain)).toEqual({ scopes: ["meanwhile:metrics"] });
  expect(access.standingOf(app(), plain)).toEqual({ scopes: ["meanwhile:metrics"] });
});

test("the local user needs nothing", () => {
  const access = open([{ tools: "*", scopes: ["x"], groups: ["y"] }]);
  expect(access.standingOf({ caller: localUser }, scoped)).toBe("granted");
  expect(access.isListed({ caller: localUser }, scoped)).toBe(true);
});

test("tools without a scope that could be granted are listed to users alone, and no tools of administrators", () => {
  const callers = [user(), key(), app(), { caller: anonymous }];
  expect(callers.map((one) => open().isListed(one, scoped))).toEqual([true, false, false, false]);
  expect(callers.map((one) => open([], false).isListed(one, scoped))).toEqual([false, false, false, false]);
  expect(open().isListed(user(), bundled)).toBe(false);
  expect(open([{ tools: "*", groups: ["ops"] }]).isListed(user(), scoped)).toBe(false);
});

test("users of an issuer that cannot issue our scopes are listed the tools that they may call", () => {
  const issuers = [
    { issuer, grant: [{ scopes: ["meanwhile:call"] }] },
    { issuer: "https://other.example", grant: [] },
  ];
  const access = new ToolAccess({ access: [], listUngranted: true, issuers });
  const other: Authentication = { caller: userCaller({ issuer: "https://other.example", subject: "ada" }) };
  for (const rights of [user(), other]) {
    const isListed = rights === other;
    expect(access.isListed(rights, scoped)).toBe(isListed);
    expect(access.isListed(access.reduce(rights) ?? rights, scoped)).toBe(isListed);
  }
});

test("rights are reduced to what access depends on, and grant the same", () => {
  const access = open([{ tools: "*", groups: ["ops"] }]);
  const one = user({ scopes: ["b", "a", "b"], groups: ["ops", "team 1"], name: "Ada" });
  const other: Authentication = {
    caller: userCaller({ issuer, subject: "bob" }, { scopes: ["a", "b"], groups: ["team 2", "ops"] }),
    scopesFrom: "the claim `scope`",
  };
  expect(access.reduce(one)).toEqual(access.reduce(other));
  expect(access.reduce(one)).not.toEqual(access.reduce(user({ scopes: ["a", "b"] })));
  expect(access.reduce(key())).not.toEqual(access.reduce(key({}, ["a"])));
  expect(access.reduce({ caller: localUser })).toBeUndefined();
});

test("patterns that match no tool are named", () => {
  const access = open([{ tools: "report_*" }, { tools: "reprot_*" }, { tools: "*" }]);
  expect(access.patternsWithout(["report_build"])).toEqual(["reprot_*"]);
});
