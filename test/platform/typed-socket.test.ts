import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
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

/** A folder of this user alone in another one. */
function below(folder: string): string {
  const own = path.join(folder, "own");
  mkdirSync(own, { mode: 0o700 });
  return own;
}

async function open(file: string) {
  const socket = typedSocket(file);
  const { server, listen } = createListener();
  await socket.open(listen);
  return { socket, server };
}

test("can be reached by its owner alone from its first moment, whatever the umask, and is removed with its server", async () => {
  const folder = temporaryFolder();
  const file = path.join(folder, "s.sock");
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  const modes: number[] = [];
  const socket = typedSocket(file);
  const { listen } = createListener();
  await socket.open((name) => {
    const listening = listen(name);
    modes.push(statSync(path.dirname(name)).mode & 0o777);
    return listening;
  });
  expect(modes, "of the folder in which it is made").toEqual([0o700]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder), "nothing else is left there").toEqual(["s.sock"]);
  socket.remove();
  expect(readdirSync(folder)).toEqual([]);
});

test("other files that the process makes meanwhile have the mode that the umask gives them", async () => {
  const folder = temporaryFolder();
  const umask = process.umask(0o022);
  onTestFinished(() => void process.umask(umask));
  const { listen } = createListener();
  await typedSocket(path.join(folder, "s.sock")).open((name) => {
    mkdirSync(path.join(folder, "other"));
    return listen(name);
  });
  expect(statSync(path.join(folder, "other")).mode & 0o777).toBe(0o755);
});

test("of servers that start at one path at once exactly one listens, also where a killed one left its socket", async () => {
  for (const isLeft of [false, true]) {
    const folder = temporaryFolder();
    const file = path.join(folder, "s.sock");
    if (isLeft) {
      const { server } = await open(file);
      server.close();
      await once(server, "close");
    }
    const openings = await Promise.allSettled([open(file), open(file), open(file)]);
    const opened = openings.filter((result) => result.status === "fulfilled");
    const refused = openings.filter((result) => result.status === "rejected");
    expect(opened.map(({ value }) => value.socket.isThere())).toEqual([true]);
    expect(refused.map(({ reason }) => String(reason))).toEqual(
      Array(2).fill(`RuntimeError: ${file} is in use; choose another path with --socket.`),
    );
    expect(readdirSync(folder)).toEqual(["s.sock"]);
  }
});

test("where listening fails or a file takes the path meanwhile, nothing else is left or removed", async () => {
  const folder = temporaryFolder();
  const file = path.join(folder, "s.sock");
  await expect(typedSocket(file).open(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(readdirSync(folder)).toEqual([]);
  const { listen } = createListener();
  const opening = typedSocket(file).open(async (name) => {
    await listen(name);
    writeFileSync(file, "mine");
  });
  await expect(opening).rejects.toThrow("exists and is not a socket");
  expect(readFileSync(file, "utf8")).toBe("mine");
  expect(readdirSync(folder)).toEqual(["s.sock"]);
});

test("a path as long as the system takes is listened on", async () => {
  const folder = temporaryFolder();
  const long = path.join(folder, "x".repeat(100 - Buffer.byteLength(folder) - "//s.sock".length));
  mkdirSync(long);
  const file = path.join(long, "s.sock");
  expect(Buffer.byteLength(file)).toBe(100);
  expect((await open(file)).socket.isThere()).toBe(true);
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

test("in a folder of its own below one where anybody may write, as /tmp, it is listened on, by a link too", async () => {
  const folder = temporaryFolder();
  const own = below(folder);
  chmodSync(folder, 0o1777);
  symlinkSync("own", path.join(folder, "link"));
  expect((await open(path.join(own, "a.sock"))).socket.isThere()).toBe(true);
  expect((await open(path.join(folder, "link", "b.sock"))).socket.isThere()).toBe(true);
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
    "where a folder is": (folder) => {
      mkdirSync(path.join(folder, "s.sock"));
      return [path.join(folder, "s.sock"), /exists and is not a socket; choose another path\.$/];
    },
    "where a link is": (folder) => {
      symlinkSync("nowhere", path.join(folder, "s.sock"));
      return [path.join(folder, "s.sock"), /exists and is not a socket; choose another path\.$/];
    },
    "in a folder that cannot be written": (folder) => {
      chmodSync(folder, 0o500);
      // Root may write everywhere but there.
      const file = path.join(isRoot ? "/proc" : folder, "s.sock");
      return [file, /cannot be made: \/\S+ cannot be written \(E[A-Z]+\); choose another folder\.$/];
    },
    "below a folder that others may write": (folder) => {
      const own = below(folder);
      chmodSync(folder, 0o777);
      return [
        path.join(own, "s.sock"),
        /is below \S+, which others may write \(mode 0777\), so they could replace the folders in it; choose another folder, or chmod go-w \S+\.$/,
      ];
    },
    "below a folder that a group may write": (folder) => {
      const own = below(folder);
      chmodSync(folder, 0o770);
      return [path.join(own, "s.sock"), /is below \S+, which others may write \(mode 0770\)/];
    },
    "by a link in a folder that others may write": (folder) => {
      symlinkSync(below(temporaryFolder()), path.join(folder, "link"));
      chmodSync(folder, 0o777);
      return [path.join(folder, "link", "s.sock"), /is below \S+, which others may write \(mode 0777\)/];
    },
    "by a link that leads below such a folder": (folder) => {
      const open = temporaryFolder();
      symlinkSync(below(open), path.join(folder, "link"));
      chmodSync(open, 0o777);
      return [path.join(folder, "link", "s.sock"), /is below \S+, which others may write \(mode 0777\)/];
    },
    ...(isRoot && {
      "in a folder of another user": (folder: string): [string, RegExp] => {
        const theirs = below(folder);
        chownSync(theirs, 65_534, 65_534);
        return [path.join(theirs, "s.sock"), /is in a folder of another user \(uid 65534\)/];
      },
      "below a folder of another user": (folder: string): [string, RegExp] => {
        const own = below(folder);
        chownSync(folder, 65_534, 65_534);
        return [
          path.join(own, "s.sock"),
          /is below \S+ of another user \(uid 65534\), who could replace it; choose another folder\.$/,
        ];
      },
      "by another user's link": (folder: string): [string, RegExp] => {
        const link = path.join(folder, "link");
        symlinkSync(below(temporaryFolder()), link);
        lchownSync(link, 65_534, 65_534);
        return [path.join(link, "s.sock"), /is reached by the link \S+link of another user \(uid 65534\)/];
      },
    }),
  };

  const list = (folder: string) => {
    try {
      return readdirSync(folder);
    } catch {
      return [];
    }
  };

  test.each(Object.entries(places))("%s", async (_, place) => {
    const [file, sentence] = place(temporaryFolder());
    const before = list(path.dirname(file));
    const opening = open(file);
    await expect(opening).rejects.toThrow(UsageError);
    await expect(opening).rejects.toThrow(sentence);
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) expect(readFileSync(file, "utf8")).toBe("mine");
    if (path.dirname(file) !== "/proc") expect(list(path.dirname(file))).toEqual(before);
  });
});

test("on Windows it is a pipe", () => {
  expect(() => typedSocket("C:\\Users\\me\\s.sock", "win32")).toThrow("is not the name of a pipe");
  expect(typedSocket("\\\\.\\pipe\\my-server", "win32").isThere()).toBe(false);
});
