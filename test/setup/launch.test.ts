import { expect, test } from "vitest";
import { checkName, toName, toProjectLaunch, toUserLaunch, toUserWrap } from "../../src/setup/launch.ts";

const facts = {
  node: "/usr/bin/node",
  executable: "/usr/lib/node_modules/meanwhile/bin/meanwhile.cjs",
  launcher: "/home/ada/.meanwhile/bin/meanwhile",
  isWindows: false,
  folder: "/srv/p",
  flags: { commands: ["/srv/a b", "/srv/c"] },
  env: {},
};

test("a user's entry names the launcher in the home by its path, and the folder to start in", () => {
  expect(toUserLaunch(facts)).toEqual({
    command: facts.launcher,
    args: ["-C", "/srv/p", "serve", "--commands", "/srv/a b", "--commands", "/srv/c"],
    env: {},
  });
});

test("without the parts of a launcher, an entry names Node and the executable", () => {
  const bundled = { ...facts, launcher: undefined, flags: { bundled: true } };
  expect(toUserLaunch(bundled)).toMatchObject({
    command: "/usr/bin/node",
    args: [facts.executable, "-C", "/srv/p", "serve", "--bundled"],
  });
});

test("a wrapped entry gets no home, which the launcher knows, and the store under a name that is ours alone", () => {
  const env = { MEANWHILE_HOME: "/srv/home", MEANWHILE_STORE: "postgres://db/x" };
  expect(toUserWrap({ ...facts, env }, ["--name", "a", "--", "b"])).toEqual({
    command: facts.launcher,
    args: ["wrap", "--name", "a", "--", "b"],
    env: { MEANWHILE_ENTRY_STORE: "postgres://db/x" },
  });
  expect(toUserLaunch({ ...facts, env }).env).toEqual(env);
});

test.each(["50%", "a&b", "a^b", "a!b", 'a"b', "a<b", "a|b", "a\nb", ""])(
  "on Windows an entry with the argument %j names Node and the launcher's part in JavaScript",
  (word) => {
    const windows = { ...facts, isWindows: true, node: "C:\\node.exe", launcher: "C:\\h\\bin\\meanwhile" };
    expect(toUserWrap(windows, ["--", "b", "a (1)=;,"]).command).toBe("C:\\h\\bin\\meanwhile.cmd");
    expect(toUserWrap(windows, ["--", "b", word])).toMatchObject({
      command: "C:\\node.exe",
      args: ["C:\\h\\bin\\meanwhile-launcher.cjs", "wrap", "--", "b", word],
    });
    const odd = { ...windows, launcher: `C:\\50% & more\\bin\\meanwhile` };
    expect(toUserWrap(odd, ["--", "b"]).command).toBe("C:\\node.exe");
  },
);

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
