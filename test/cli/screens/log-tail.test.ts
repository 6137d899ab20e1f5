import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { LogTail } from "../../../src/cli/screens/log-tail.ts";
import { maxLogBytes, rotateLog } from "../../../src/daemon/log-file.ts";
import { temporaryFolder } from "../../helpers/home.ts";

const now = Date.now;
/** More than a log may have, and one line of it. */
const heap = `${"x".repeat(maxLogBytes)}\n`;

function openLog() {
  const file = path.join(temporaryFolder(), "daemon.log");
  writeFileSync(file, "");
  const tail = new LogTail(file);
  return {
    file,
    tail,
    write: (text: string) => appendFileSync(file, text),
    rotate: (files = 3) => rotateLog(file, files, now()),
    read: async () => {
      let text = "";
      await tail.read((more) => (text += more));
      return text.replaceAll(heap, "#");
    },
  };
}

test("what is put aside between two looks is read on where it was, whatever came before and after, and nothing twice", async () => {
  const { write, rotate, read } = openLog();
  write("a");
  expect(await read()).toBe("a");
  write(`b${heap}`);
  rotate();
  write("c");
  expect(await read()).toBe("b#c");
  write(`d${heap}`);
  rotate();
  write(`e${heap}`);
  rotate();
  write("f");
  expect(await read()).toBe("d#e#f");
  expect(await read()).toBe("");
});

test("a first look begins with the oldest that is kept", async () => {
  const { write, rotate, read } = openLog();
  for (const letter of ["a", "b", "c"]) {
    write(`${letter}${heap}`);
    rotate(2);
  }
  write("d");
  expect(await read()).toBe("b#c#d");
});

test("a log of at most 10 MiB stays, so does one that somebody else puts aside right now; a crashed one's turn is over after 10 s", () => {
  const { file, write, rotate } = openLog();
  write("x".repeat(maxLogBytes));
  rotate();
  expect(existsSync(`${file}.1`)).toBe(false);
  write("x");
  writeFileSync(`${file}.turn`, "1");
  rotate();
  expect(existsSync(`${file}.1`)).toBe(false);
  const later = now() + 11_000;
  rotateLog(file, 3, later);
  rotateLog(file, 3, later);
  expect(statSync(`${file}.1`).size).toBe(maxLogBytes + 1);
  expect(readFileSync(file, "utf8")).toBe("");
  expect(existsSync(`${file}.turn`)).toBe(false);
});

test("fewer files are kept when fewer are to be", () => {
  const { file, write, rotate } = openLog();
  for (const files of [3, 3, 3, 1]) {
    write(heap);
    rotate(files);
  }
  expect([1, 2, 3].map((number) => existsSync(`${file}.${number}`))).toEqual([true, false, false]);
});
