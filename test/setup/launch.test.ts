import { expect, test } from "vitest";
import { checkName, toName, toProjectLaunch, toUserLaunch } from "../../src/setup/launch.ts";

const facts = {
  node: "/usr/bin/node",
  executable: "/usr/lib/node_modules/meanwhile/bin/meanwhile.cjs",
  version: "1.2.3",
  isWindows: false,
  folder: "/srv/p",
  flags: { commands: ["/srv/a b", "/srv/c"] },
  env: {},
};

test("a user's entry has whole paths and says its folder, since hosts have another folder and another PATH", () => {
  expect(toUserLaunch(facts)).toEqual({
    command: "/usr/bin/node",
    args: [facts.executable, "-C", "/srv/p", "serve", "--commands", "/srv/a b", "--commands", "/srv/c"],
    env: {},
  });
});

test("what npx has fetched is asked for again, with its version", () => {
  const fetched = {
    ...facts,
    executable: "/home/ada/.npm/_npx/1f2e/node_modules/meanwhile/bin/meanwhile.cjs",
    flags: { bundled: false },
  };
  expect(toUserLaunch(fetched)).toMatchObject({
    command: "npx",
    args: ["-y", "meanwhile@1.2.3", "-C", "/srv/p", "serve", "--no-bundled"],
  });
  expect(toUserLaunch({ ...fetched, isWindows: true })).toMatchObject({
    command: "cmd",
    args: ["/c", "npx", "-y", "meanwhile@1.2.3", "-C", "/srv/p", "serve", "--no-bundled"],
  });
  expect(toUserLaunch({ ...fetched, flags: { bundled: true } }).args).toEqual([
    "-y",
    "meanwhile@1.2.3",
    "-C",
    "/srv/p",
    "serve",
    "--bundled",
  ]);
});

test("a project's entry has nothing of this machine, and no folder that reads like a flag", () => {
  const launch = toProjectLaunch("/srv/p", { commands: ["/srv/p/x/y", "/srv/p/-rf", "/srv/p"] });
  expect(launch).toEqual({
    command: "npx",
    args: ["--no", "meanwhile", "serve", "--commands", "x/y", "--commands", "./-rf", "--commands", "."],
    env: {},
  });
});

test("a name is letters, digits, - and _; one from a config is made to fit", () => {
  expect(["reports", "a_b-2", "x".repeat(64)].map(checkName)).toEqual(["reports", "a_b-2", "x".repeat(64)]);
  for (const name of ["x".repeat(65), "-x", "é", "a b", "a.b"])
    expect(() => checkName(name), name).toThrow(/is not a name hosts take/);
  expect(["Ada's reports!", "  ", "__x", "ünï", "meanwhile"].map(toName)).toEqual([
    "Ada-s-reports",
    "meanwhile",
    "x",
    "n",
    "meanwhile",
  ]);
});
