import { chmodSync, chownSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { homeAt } from "../../src/paths.ts";
import { onStoreGone, openStore, storeExists, storeOf } from "../../src/store/open.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

test("A look makes no store; who opens one makes it, and hears when it is taken away.", async () => {
  const clock = new FakeClock();
  const file = path.join(temporaryFolder(), "tasks.db");
  expect(await storeExists(file)).toBe(false);
  await (await openStore(file, { clock })).close();
  expect(await storeExists(file)).toBe(true);
  let gone = 0;
  const stop = onStoreGone(file, clock, () => gone++);
  clock.advance(10_000);
  expect(gone).toBe(0);
  rmSync(file);
  clock.advance(10_000);
  expect(gone).toBe(1);
  stop();
  expect(clock.pendingTimers).toBe(0);
});

test("A database elsewhere is no file: its URL is neither resolved nor looked at.", async () => {
  const url = "postgres://ada:secret@db.example/tasks?schema=x";
  const clock = new FakeClock();
  expect(storeOf(homeAt({}), { MEANWHILE_STORE: url }, "/nowhere")).toBe(url);
  expect(await storeExists(url)).toBe(true);
  onStoreGone(url, clock, () => expect.unreachable());
  expect(clock.pendingTimers).toBe(0);
});

describe("a store of one's own choice", () => {
  const open = (file: string) => {
    try {
      storeOf(homeAt({}), { MEANWHILE_STORE: file }, "/");
      return "";
    } catch (error) {
      expect(error).toMatchObject({ code: "HOME_UNUSABLE" });
      return (error as Error).message;
    }
  };

  test("is taken where nobody else may write", () => {
    const file = path.join(temporaryFolder(), "tasks.db");
    expect(open(file)).toBe("");
    writeFileSync(file, "", { mode: 0o600 });
    expect(open(file)).toBe("");
  });

  test.each(["tasks.db", "tasks.db-wal", "tasks.db-shm", "tasks.db-journal"])(
    "is refused when others may write %s, or its folder, or own it",
    (name) => {
      const folder = writeFiles(temporaryFolder(), { [name]: "" });
      const file = path.join(folder, "tasks.db");
      chmodSync(path.join(folder, name), 0o666);
      expect(open(file)).toBe(
        `${path.join(folder, name)} may be written by others (mode 0666), so nothing in it was read; if what is there is yours, chmod go-w ${path.join(folder, name)}, or set MEANWHILE_STORE to a file in a folder of your own.`,
      );
      chmodSync(path.join(folder, name), 0o600);
      chmodSync(folder, 0o1777);
      expect(open(file)).toContain(`${folder} may be written by others (mode 1777)`);
      chmodSync(folder, 0o700);
      if (process.getuid?.() !== 0) return;
      const nobody = 65_534;
      chownSync(path.join(folder, name), nobody, nobody);
      expect(open(file)).toContain(`${path.join(folder, name)} belongs to another user (uid ${nobody}, you are 0)`);
    },
  );
});
