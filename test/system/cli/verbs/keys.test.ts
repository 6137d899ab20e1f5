import { expect, test } from "vitest";
import { createKeyVerifier } from "../../../../src/auth/key-verifier.ts";
import { systemClock } from "../../../../src/clock.ts";
import { silentLog } from "../../../../src/log.ts";
import { readSettings } from "../../../../src/settings/settings.ts";
import { openStore } from "../../../../src/store/open.ts";
import { temporaryFolder, writeFiles } from "../../../helpers/home.ts";
import { runMeanwhile } from "../../../helpers/meanwhile.ts";
import { serverPort, testPassword, urlOf } from "../../../helpers/postgres.ts";

const command =
  'import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "Hello", run: () => ({}) });';

test("keys on PostgreSQL are those of the project, whichever home and node asks", async () => {
  const store = urlOf(await serverPort());
  const cwd = writeFiles(temporaryFolder(), { "commands/hello.mjs": command });
  const keys = async (words: readonly string[], folder = cwd) => {
    const env = { MEANWHILE_HOME: temporaryFolder(), MEANWHILE_STORE: store };
    const ran = await runMeanwhile(["keys", ...words], { cwd: folder, env });
    expect(ran.stdout + ran.stderr).not.toContain(testPassword);
    return ran;
  };
  const [first, ...others] = await Promise.all([1, 2, 3].map(() => keys(["add", "ci", "--expires", "90d"])));
  const added = [first, ...others].filter((ran) => ran?.code === 0);
  expect(added).toHaveLength(1);
  expect(added[0]?.stdout).toMatch(/^mw_[0-9A-Za-z]{16}_[0-9A-Za-z]{43}\n$/);
  expect(JSON.parse((await keys(["list", "--json"])).stdout)).toMatchObject([{ name: "ci", isExpired: false }]);

  const opened = await openStore(store);
  const { project } = readSettings({ cwd, env: { MEANWHILE_HOME: temporaryFolder() }, flags: {} }).settings;
  const openKeys = async () => opened.shared.keys;
  const verify = async (of: string, key = "") =>
    await createKeyVerifier({ openKeys, project: of, clock: systemClock, log: silentLog }).verify(key.trim());
  const { caller } = await verify(project, added[0]?.stdout);
  expect(caller).toMatchObject({ kind: "key", name: "ci", scopes: ["meanwhile:call"] });
  await expect(verify("another project", added[0]?.stdout)).rejects.toMatchObject({ kind: "invalid" });
  const rotated = await keys(["rotate", "ci"]);
  for (const { stdout } of [added[0] ?? rotated, rotated])
    expect((await verify(project, stdout)).caller.id).toBe(caller.id);

  const elsewhere = writeFiles(temporaryFolder(), { "commands/other.mjs": command });
  expect(await keys(["revoke", "ci"], elsewhere)).toMatchObject({ code: 1, stdout: "" });
  expect(await keys(["revoke", "ci"])).toMatchObject({ code: 0, stdout: "" });
  await expect(verify(project, rotated.stdout)).rejects.toMatchObject({ kind: "invalid" });
  await opened.close();
});
