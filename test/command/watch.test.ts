import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { watchFolders } from "../../src/command/watch.ts";
import { silentLog } from "../../src/log.ts";
import { FakeClock, pass, turns } from "../helpers/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";

/** Watches a folder, and closes that while a change of a file is being read. */
async function closeDuringChange(end: Promise<void>) {
  const clock = new FakeClock();
  const [folder, other] = [temporaryFolder(), temporaryFolder()];
  const asked = { others: 0 };
  const errors: string[] = [];
  const changed = Promise.withResolvers<void>();
  const close = watchFolders({
    folders: [folder],
    others() {
      asked.others += 1;
      return [path.join(other, "imported.ts")];
    },
    clock,
    log: { ...silentLog, error: (text) => void errors.push(text) },
    async onChange() {
      changed.resolve();
      await end;
    },
  });
  writeFileSync(path.join(folder, "command.ts"), "x");
  await pass(clock, 1_000);
  await changed.promise;
  close();
  return { asked, errors };
}

test("a watcher that is closed while a change is read watches nothing afterwards", async () => {
  const end = Promise.withResolvers<void>();
  const { asked } = await closeDuringChange(end.promise);
  const before = asked.others;
  end.resolve();
  await turns();
  expect(asked.others).toBe(before);
});

test("a watcher that is closed while a change is read logs no error of that", async () => {
  const end = Promise.withResolvers<void>();
  const { errors } = await closeDuringChange(end.promise);
  end.reject(new Error("the folder is gone"));
  await turns();
  expect(errors).toEqual([]);
});
