import { expect, test } from "vitest";
import { runVerb } from "../../../src/cli/verb.ts";
import { verb } from "../../../src/cli/verbs/whoami.ts";
import { keyCaller, userCaller } from "../../../src/command/caller.ts";
import { openServer } from "../../helpers/server.ts";
import { contextHere, openTerminalHere } from "../../helpers/terminal.ts";

async function run(...words: string[]): Promise<string> {
  const { terminal, printed } = openTerminalHere();
  const surroundings = { flags: {}, terminal, context: contextHere(), protectStdout: async () => {} };
  expect(await runVerb("whoami", verb, { words, ...surroundings })).toBe(0);
  return printed();
}

const key = keyCaller("k1", { name: "ci", scopes: ["meanwhile:call", "notes:write"] });
const user = userCaller(
  { issuer: "https://issuer.example", subject: "ada" },
  { client: "app", scopes: ["meanwhile:read"], groups: ["ops"] },
);
const withoutRights = keyCaller("k2", { scopes: ["meanwhile:metrics"] });
const callers = { key, user, withoutRights };

const open = async () =>
  await openServer({
    in: "http",
    identify: ({ headers }) => callers[String(headers["x-caller"]) as keyof typeof callers],
  });

test("without a target it is the local user", async () => {
  expect(await run()).toBe("kind    local\nid      local\nscopes  every right\ngroups  none\n");
  expect(JSON.parse(await run("--json"))).toEqual({ kind: "local", id: "local", scopes: [], groups: [] });
});

test.each(["2025-11-25", "2026-07-28"])(
  "a server says who its caller is, and nothing of its own (%s)",
  async (revision) => {
    const server = await open();
    const target = ["--target", await server.url(), "--revision", revision];
    const as = (name: string) => run(...target, "--header", `x-caller: ${name}`);
    expect(await as("key")).toBe(
      "kind    key\nid      k1\nname    ci\nscopes  meanwhile:call, notes:write\ngroups  none\n",
    );
    expect(await as("user")).toBe(
      "kind    user\nid      https://issuer.example#sub:ada\nclient  app\nscopes  meanwhile:read\ngroups  ops\n",
    );
    expect(await run(...target, "--json")).toBe(
      `${JSON.stringify({ kind: "anonymous", id: "anonymous", scopes: [], groups: [] }, null, 2)}\n`,
    );
    expect(await run(...target, "--header", `authorization: Bearer ${server.token()}`)).toContain("kind    local\n");
  },
);

test("a caller without meanwhile:read is not told", async () => {
  const server = await open();
  await expect(run("--target", await server.url(), "--header", "x-caller: withoutRights")).rejects.toThrow(
    /refuses us \(HTTP status 403\)\. \S+ needs the scope meanwhile:read/,
  );
});
