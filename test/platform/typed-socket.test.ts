import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { UsageError } from "../../src/errors.ts";
import { typedSocket } from "../../src/system/typed-socket.ts";
import { temporaryFolder } from "../helpers/home.ts";

/** `serve --http --socket <path>`: a socket at a path that a person has typed. */

const isRoot = process.getuid?.() === 0;

function createListener(): { readonly server: Server; readonly listen: (name: string) => Promise<void> } {
  const server = createServer((connection) => connection.destroy());
  onTestFinished(() => void server.close());
  return {
    server,
    listen: (name) => new Promise((resolve, reject) => server.once("error", reject).listen(name, resolve)),
  };
}

async function open(file: string) {
  const socket = typedSocket(file);
  const { server, listen } = createListener();
  await socket.open(listen);
  return { socket, server };
}

test("has mode 0600 from its first moment, whatever the umask, and is removed with its server", async () => {
  const file = path.join(temporaryFolder(), "s.sock");
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  const modes: number[] = [];
  const socket = typedSocket(file);
  const { listen } = createListener();
  await socket.open((name) => {
    const listening = listen(name);
    modes.push(statSync(name).mode & 0o777);
    return listening;
  });
  expect(modes).toEqual([0o600]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(process.umask()).toBe(0);
  socket.remove();
  expect(existsSync(file)).toBe(false);
});

test("a socket that a killed process left is replaced; one that is used is not", async () => {
  const file = path.join(temporaryFolder(), "s.sock");
  const first = await open(file);
  await expect(open(file)).rejects.toThrow(`${file} is in use; choose another path with --socket.`);
  first.server.close();
  await once(first.server, "close");
  expect(existsSync(file)).toBe(true);
  const second = await open(file);
  first.socket.remove();
  expect(second.socket.isThere()).toBe(true);
});

describe("is refused, and nothing is changed,", () => {
  const places: Readonly<Record<string, (folder: string) => readonly [file: string, sentence: RegExp]>> = {
    "where anybody may write, as in /tmp": (folder) => {
      chmodSync(folder, 0o1777);
      return [path.join(folder, "s.sock"), /may write \(mode 1777\), .*; choose a folder of your own\.$/];
    },
    "where a group may write": (folder) => {
      chmodSync(folder, 0o770);
      return [path.join(folder, "s.sock"), /may write \(mode 0770\), .* of your own, or chmod go-w \/.*\.$/];
    },
    "in a folder that does not exist": (folder) => [
      path.join(folder, "none", "s.sock"),
      /cannot be made: there is no folder .*none; create it first\.$/,
    ],
    "below a file": (folder) => {
      writeFileSync(path.join(folder, "file"), "mine");
      return [path.join(folder, "file", "folder", "s.sock"), /cannot be made: there is no folder/];
    },
    "where a file is": (folder) => {
      writeFileSync(path.join(folder, "s.sock"), "mine");
      return [path.join(folder, "s.sock"), /exists and is not a socket; choose another path\.$/];
    },
    "where the path is too long": (folder) => [
      path.join(folder, "s".repeat(100)),
      /is too long: the system takes up to 100 bytes; choose a shorter path\.$/,
    ],
    ...(isRoot && {
      "in a folder of another user": (folder: string): [string, RegExp] => {
        mkdirSync(path.join(folder, "theirs"));
        chownSync(path.join(folder, "theirs"), 65_534, 65_534);
        return [path.join(folder, "theirs", "s.sock"), /is in a folder of another user \(uid 65534\)/];
      },
    }),
  };

  test.each(Object.entries(places))("%s", async (_, place) => {
    const [file, sentence] = place(temporaryFolder());
    const opening = open(file);
    await expect(opening).rejects.toThrow(UsageError);
    await expect(opening).rejects.toThrow(sentence);
    if (existsSync(file)) expect(readFileSync(file, "utf8")).toBe("mine");
  });
});

test("on Windows it is a pipe", () => {
  expect(() => typedSocket("C:\\Users\\me\\s.sock", "win32")).toThrow("is not the name of a pipe");
  expect(typedSocket("\\\\.\\pipe\\my-server", "win32").isThere()).toBe(false);
});
