import { linkSync, mkdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { compileGlob } from "../../commands/_pack/glob.ts";
import { isInside, readName, showName } from "../../commands/_pack/paths.ts";
import { personsFolders } from "../../commands/_pack/persons.ts";
import { openReach } from "../../commands/_pack/reach.ts";
import { isSecretName } from "../../commands/_pack/secret-names.ts";
import reset from "../../commands/database/reset.ts";
import search from "../../commands/ingest/search.ts";
import sources from "../../commands/ingest/sources.ts";
import status from "../../commands/monitor/status.ts";
import sync from "../../commands/monitor/sync.ts";
import watch from "../../commands/monitor/watch.ts";
import batch from "../../commands/transform/batch.ts";
import transform from "../../commands/transform/index.ts";
import index from "../../commands/vault/index/index.ts";
import type { RunOptions } from "../../src/command/run.ts";
import { anywhere, inSession, openRoots, typed } from "../fixtures/pack/reaches.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { readDocumentsHere } from "../helpers/read-here.ts";
import { run } from "../helpers/run.ts";
import { makeSocket } from "../helpers/unix-socket.ts";

readDocumentsHere();

describe("a name", () => {
  test.each([
    ["plain.txt", "plain.txt"],
    ["ümläut 100%.txt", "ümläut 100%.txt"],
    ["two\nlines", "two%0Alines"],
    ["looks%0Aescaped", "looks%250Aescaped"],
    [Buffer.from([0x61, 0xff, 0x62]), "a%FFb"],
    [Buffer.from("half \xe2\x82", "latin1"), "half %E2%82"],
    ["line\u2028separator", "line%E2%80%A8separator"],
  ])("%j is shown as %s", (name, shown) => {
    expect(showName(Buffer.from(name))).toBe(shown);
  });

  test("of any bytes is shown in one line, and what is shown can be given again", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (bytes) => {
        const shown = showName(Buffer.from(bytes));
        expect(shown).not.toMatch(/[\n\r\0]/);
        expect(readName(shown)).toEqual(Buffer.from(bytes));
      }),
    );
  });
});

describe("a path that was typed in a terminal", () => {
  test("is resolved from the shell's folder, wherever it leads", () => {
    const folder = writeFiles(realpathSync(temporaryFolder()), { "a.txt": "", ".env": "", id_rsa: "" });
    const reach = openReach({ ...typed, origin: { door: "terminal", folder }, home: folder });
    expect(reach.resolve("x/../a.txt")).toMatchObject({ shown: path.join(folder, "a.txt"), kind: "file" });
    expect(reach.resolve("missing/too")).toMatchObject({ shown: path.join(folder, "missing/too"), kind: "missing" });
    for (const name of ["/etc/passwd", "/proc/self/environ", ".env", "id_rsa", `${folder}/token`, ".."])
      expect(reach.resolve(name).shown).toBeTruthy();
    expect(reach.resolve("~").path).toEqual(realpathSync.native(Buffer.from(homedir()), "buffer"));
    expect(reach.resolve("/dev/null").kind).toBe("other");
  });

  test.each([
    ["a\0b", "`file` holds a NUL character"],
    ["", "`file` is empty"],
    ["a%00b", "holds an escaped dot, slash or NUL"],
    ["a/%2e%2e/b", "holds an escaped dot, slash or NUL"],
  ])("is refused as %j all the same", (text, sentence) => {
    expect(() => anywhere.resolve(text, "file")).toThrow(sentence);
  });

  test("as it was shown finds the file with the strange name", () => {
    const root = realpathSync(temporaryFolder());
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0x0a])]), "");
    writeFileSync(path.join(root, "a%41"), "");
    expect(anywhere.resolve(path.join(root, "%FF%0A")).kind).toBe("file");
    // A file of this very name comes before what it could stand for.
    expect(anywhere.resolve(path.join(root, "a%41")).path.toString()).toBe(path.join(root, "a%41"));
  });

  test("below a link inside does not hide where it is", () => {
    const root = realpathSync(temporaryFolder());
    mkdirSync(path.join(root, "real"));
    symlinkSync("real", path.join(root, "link"));
    expect(anywhere.resolve(path.join(root, "link/new/file")).shown).toBe(path.join(root, "real/new/file"));
  });
});

describe("a path that came through MCP", () => {
  const closed = "; a person can open it with the setting `pack.roots`, in a terminal or in the config file.";

  /** A session's folder beside one that is none of its business, and Meanwhile's home inside it. */
  function place() {
    const above = realpathSync(temporaryFolder());
    const files = {
      "a.txt": "mine",
      ".env": "mine",
      ".ssh/config": "mine",
      "deep/id_rsa": "mine",
      "deep/b.txt": "mine",
      "home/token": "mine",
      "home/notes.txt": "mine",
    };
    const folder = writeFiles(path.join(above, "work"), files);
    const outside = writeFiles(path.join(above, "work-neighbour"), { "a.txt": "theirs" });
    symlinkSync(outside, path.join(folder, "out"));
    symlinkSync("/etc/not-there-yet", path.join(folder, "later"));
    symlinkSync(".env", path.join(folder, "plain.txt"));
    linkSync(path.join(outside, "a.txt"), path.join(folder, "hard.txt"));
    const home = path.join(folder, "home");
    return { folder, outside, home, reach: openReach(inSession(folder, home)) };
  }

  const dot = "has a name that begins with a dot, or lies below one, and is closed to MCP clients";
  const own = "lies in Meanwhile's own folder, which is closed to MCP clients";
  const system = "belongs to the system, and is closed to MCP clients";
  const key = "has the name of a key, a token or a password file, and is closed to MCP clients";
  const hard = "has another name elsewhere (a hard link), and is closed to MCP clients";
  const out = "lies outside the folders that are open to MCP clients";

  test.each([
    ["a file outside", "/etc/passwd", out],
    ["the parent folder", "..", out],
    ["a way up and down again", "deep/../../work-neighbour/a.txt", out],
    ["a neighbour whose name begins the same", "../work-neighbour/a.txt", out],
    ["a link out of the root", "out/a.txt", out],
    ["a link that leads nowhere yet", "later", out],
    ["%2e%2e", "deep/%2e%2e/%2e%2e/work-neighbour/a.txt", "holds an escaped dot, slash or NUL"],
    [
      "%2e%2e behind a name that is not there",
      "none/%2e%2e/%2E./work-neighbour/a.txt",
      "holds an escaped dot, slash or NUL",
    ],
    ["%2F", "deep%2F..%2F..%2Fwork-neighbour/a.txt", "holds an escaped dot, slash or NUL"],
    ["a dot file", ".env", dot],
    ["a dot file, its dot escaped", "%2Eenv", dot],
    ["a file below a dot folder", ".ssh/config", dot],
    ["a dot file that is not there", ".npmrc", dot],
    ["a link to a dot file", "plain.txt", dot],
    ["a key", "deep/id_rsa", key],
    ["a key that is not there", "deep/server.key", key],
    ["the home's token", "home/token", own],
    ["any file of the home", "home/notes.txt", own],
    ["the home itself", "home", own],
    ["a hard link", "hard.txt", hard],
    ["a device", "/dev/zero", out],
    ["/proc/self/environ", "/proc/self/environ", out],
    ["the server's own folder behind /proc", "/proc/self/cwd/package.json", out],
    ["the whole disk behind /proc", "/proc/self/root/etc/passwd", out],
  ])("is refused: %s", (_what, text, sentence) => {
    const { reach } = place();
    expect(() => reach.resolve(text, "file")).toThrow(/^`file` /);
    expect(() => reach.resolve(text, "file")).toThrow(sentence);
    if (!sentence.startsWith("holds")) expect(() => reach.resolve(text, "file")).toThrow(closed);
  });

  test("does not tell where a link outside leads", () => {
    const { reach, folder, outside } = place();
    symlinkSync("/secret/place", path.join(outside, "link"));
    expect(() => reach.resolve(path.join(outside, "link"))).toThrow(
      `\`path\` ${outside}/link ${out} (${folder})${closed}`,
    );
  });

  test.each(["/proc/self/environ", "/sys/kernel/version", "/dev/zero", "/proc/1/root"])(
    "is refused though the whole disk is a root: %s",
    (text) => {
      expect(() => openReach(openRoots("/")).resolve(text)).toThrow(/belongs to the system|lies outside/);
      if (text !== "/proc/1/root") expect(() => openReach(openRoots("/")).resolve(text)).toThrow(system);
    },
  );

  test("is relative to the session's folder, and whole where a session has none", () => {
    const { reach, folder } = place();
    expect(reach.resolve("deep/b.txt")).toMatchObject({ shown: path.join(folder, "deep/b.txt"), kind: "file" });
    expect(reach.resolve("missing/too")).toMatchObject({ shown: path.join(folder, "missing/too"), kind: "missing" });
    expect(() => openReach(openRoots(folder)).resolve("a.txt")).toThrow(
      "`path` a.txt is relative, and this server works in no folder of yours; give the whole path",
    );
    expect(openReach(openRoots(folder)).resolve(path.join(folder, "a.txt")).kind).toBe("file");
    expect(() => openReach(openRoots()).resolve(path.join(folder, "a.txt"))).toThrow("(none)");
  });

  test("is open where a root names the very thing", () => {
    const { folder, home } = place();
    const roots = [".env", ".ssh", "deep/id_rsa", "hard.txt", "home"].map((name) => path.join(folder, name));
    const reach = openReach({ ...openRoots(...roots), home });
    for (const name of [".env", ".ssh/config", "deep/id_rsa", "hard.txt", "home/notes.txt"])
      expect(reach.resolve(path.join(folder, name)).kind).toBe("file");
    expect(() => reach.resolve(path.join(home, "token"))).toThrow(key);
    expect(() => reach.resolve(path.join(folder, "a.txt"))).toThrow(out);
    const working = openReach(inSession(path.join(folder, ".ssh"), home));
    expect(working.resolve("config").kind).toBe("file");
    // That somebody works there does not open Meanwhile's own folder.
    expect(() => openReach(inSession(home, home)).resolve("notes.txt")).toThrow(own);
  });

  test("is refused when a link has taken the place of the session's folder", () => {
    const { folder, outside, reach } = place();
    renameSync(folder, `${folder}-moved`);
    symlinkSync(outside, folder);
    expect(() => reach.resolve("a.txt")).toThrow(out);
    expect(() => openReach(inSession(folder)).resolve("a.txt")).toThrow(out);
  });

  test("goes by `pack.roots`, and a variable of old is not read, but named", () => {
    const { folder } = place();
    vi.stubEnv("MEANWHILE_PACK_ROOTS", "/");
    onTestFinished(() => void vi.unstubAllEnvs());
    const warnings: string[] = [];
    const reach = openReach({ ...inSession(folder), log: { ...typed.log, warn: (text) => warnings.push(text) } });
    expect(() => reach.resolve("/etc/passwd")).toThrow(out);
    expect(warnings).toEqual([
      "MEANWHILE_PACK_ROOTS is not read any more; write its folders into the setting `pack.roots`.",
    ]);
  });

  test("of a socket is neither a file nor a folder, and is not opened", async () => {
    const { folder, reach, home } = place();
    await makeSocket(path.join(folder, "socket.txt"));
    expect(reach.resolve("socket.txt").kind).toBe("other");
    const outcome = await run(transform, { file: "socket.txt" }, { home, origin: { door: "mcp", folder } });
    expect(outcome).toMatchObject({ ending: "failed", message: expect.stringContaining("socket.txt is no file") });
  });
});

describe("what a person has put under monitor or vault", () => {
  const session = (folder: string): Partial<RunOptions> => ({ origin: { door: "mcp", folder } });

  test.each([
    ["monitor sync", sync, { recursive: true }],
    ["monitor watch", watch, { seconds: 0.001 }],
    ["vault index", index, {}],
  ])("by %s in a terminal is open to MCP clients, but not by the same through MCP", async (_name, command, input) => {
    const folder = writeFiles(realpathSync(temporaryFolder()), {
      "notes/a.md": "# A",
      "notes/deep/b.md": "",
      "notes/.env": "",
      "work/x": "",
    });
    const notes = path.join(folder, "notes");
    const home = temporaryFolder();
    const reach = () => openReach(inSession(path.join(folder, "work"), home));
    expect(
      await run(command, { path: notes, ...input }, { home, ...session(path.join(folder, "work")) }),
    ).toMatchObject({ ending: "failed" });
    // Its own folder it may sync, and that opens nothing to others.
    expect(await run(command, { path: notes, ...input }, { home, ...session(notes) })).toMatchObject({
      ending: "completed",
    });
    expect(() => reach().resolve(path.join(notes, "a.md"))).toThrow("lies outside");
    expect(await run(command, { path: notes, ...input }, { home })).toMatchObject({ ending: "completed" });
    expect(reach().resolve(path.join(notes, "deep/b.md")).kind).toBe("file");
    expect(() => reach().resolve(path.join(notes, ".env"))).toThrow("begins with a dot");
    expect(() => reach().resolve(folder)).toThrow("lies outside");
  });

  test("without the folders below is open without them", async () => {
    const folder = writeFiles(realpathSync(temporaryFolder()), { "a.md": "", "deep/b.md": "" });
    const home = temporaryFolder();
    await run(sync, { path: folder }, { home });
    const reach = openReach(inSession(home, home));
    expect(reach.resolve(path.join(folder, "a.md")).kind).toBe("file");
    expect(() => reach.resolve(path.join(folder, "deep/b.md"))).toThrow("of which only the files right in it are open");
  });

  test("is closed again when it is gone, or all is forgotten", async () => {
    const folder = writeFiles(realpathSync(temporaryFolder()), { "a/1.md": "", "b/2.md": "" });
    const home = temporaryFolder();
    for (const name of ["a", "b"]) await run(sync, { path: path.join(folder, name) }, { home });
    const open = () => personsFolders(home).map(({ path }) => path.toString());
    expect(open()).toEqual([path.join(folder, "a"), path.join(folder, "b")]);
    rmSync(path.join(folder, "a"), { recursive: true });
    await run(sync, { path: path.join(folder, "a") }, { home });
    expect(open()).toEqual([path.join(folder, "b")]);
    await run(
      reset,
      { domain: "monitor" },
      { home, door: { ask: async () => ({ action: "accept", content: { confirm: true } }) } },
    );
    expect(open()).toEqual([]);
  });
});

describe("a walk through MCP", () => {
  test("passes over what is closed, counts it, and leaves what is recorded of it as it is", async () => {
    const folder = writeFiles(realpathSync(temporaryFolder()), {
      "a.md": "open words",
      ".env": "closed words",
      ".ssh/config": "closed words",
      "deep/server.key": "closed words",
      "deep/b.md": "open words",
    });
    const outside = writeFiles(temporaryFolder(), { "c.md": "closed words" });
    linkSync(path.join(outside, "c.md"), path.join(folder, "deep/c.md"));
    symlinkSync(".env", path.join(folder, "link.md"));
    const home = temporaryFolder();
    const through = { home, origin: { door: "mcp", folder } } as const;
    expect(await run(sync, { path: folder, recursive: true }, { home })).toMatchObject({ data: { files_updated: 7 } });
    writeFiles(folder, {
      "a.md": "more open words",
      ".env": "more closed words",
      "deep/server.key": "more closed words",
    });
    expect(await run(sync, { path: folder, recursive: true }, through)).toMatchObject({
      data: { files_updated: 1, files_removed: 0, errors_total: 0 },
    });
    expect(await run(status, {}, through)).toMatchObject({ data: { tracked_files: 7 } });
    expect(await run(sources, { paths: ["."] }, through)).toMatchObject({
      data: { files_ingested: 2, hidden: 3, errors_total: 0 },
    });
    expect(await run(search, { query: "closed" }, through)).toMatchObject({ data: { count: 0 } });
    expect(await run(batch, { glob: "**/{.*,*}" }, through)).toMatchObject({
      data: { files_transformed: 2, errors_total: 0 },
    });
    expect(await run(batch, { glob: "**/.*" }, through)).toMatchObject({ data: { files_matched: 0, hidden: 5 } });
    expect(await run(index, { path: "." }, { home, origin: { door: "terminal", folder } })).toMatchObject({
      data: { notes: 4 },
    });
    expect(await run(index, { path: "." }, through)).toMatchObject({ data: { notes: 4, files_removed: 0, hidden: 3 } });
  });
});

test.each([
  ["id_rsa", true],
  ["id_ed25519_sk", true],
  ["ID_RSA.bak", true],
  ["id_rsa.pub", false],
  ["server.key", true],
  ["server.key~", true],
  ["fullchain.PEM", true],
  ["store.p12", true],
  ["store.pfx", true],
  ["passwords.kdbx", true],
  ["credentials", true],
  ["credentials.json", true],
  ["client_secret.json", true],
  ["client_secret_123.apps.json", true],
  ["my_private_key.txt", true],
  ["prod.env.local", true],
  ["terraform.tfstate", true],
  ["token.", true],
  ["token ", true],
  ["token", true],
  ["access-token.txt", true],
  ["api_key.txt", true],
  ["production.env", true],
  ["shadow", true],
  ["Login Data", true],
  ["token.ts", false],
  ["tokens.md", false],
  ["keyboard.txt", false],
  ["monkey", false],
  ["notes.md", false],
  ["environment.txt", false],
])("the name %s counts as a key's or a token's: %s", (name, isSecret) => {
  expect(isSecretName(name)).toBe(isSecret);
});

test("a folder holds itself and what is below it, not its namesakes", () => {
  const inside = (file: string, folder: string) => isInside(Buffer.from(file), Buffer.from(folder));
  expect([inside("/a/b", "/a"), inside("/a", "/a"), inside("/ab", "/a"), inside("/", "/a"), inside("/x", "/")]).toEqual(
    [true, true, false, false, true],
  );
});

describe("a pattern", () => {
  test.each([
    ["*.log", "a.log", true],
    ["*.log", "a/b.log", false],
    ["**/*.log", "a/b.log", true],
    ["**/*.log", "b.log", true],
    ["/data/**", "/data/a/b", true],
    ["file-?.txt", "file-1.txt", true],
    ["file-[0-9].txt", "file-x.txt", false],
    ["file-[!0-9].txt", "file-x.txt", true],
    ["*.{jpg,png}", "a.png", true],
    ["*.{jpg,png}", "a.gif", false],
    ["a.b", "axb", false],
    ["(a+b)|$^", "(a+b)|$^", true],
    ["\\*", "*", true],
    ["two*", "two\nlines", true],
    ["[a^\\]", "^", true],
    ["{a,b{c,d}}.x", "bd.x", true],
    ["**/a/**/b/*", "x/a/b/c", true],
    ["**/a/**/b/*", "a/x/y/b/c", true],
    ["**/a/**/b/*", "a/x/y/b/c/d", false],
    ["*a*b*c", "xaxbxc", true],
    ["*a*b*c", "xa/bxc", false],
  ])("%s on %j: %s", (pattern, text, isMatch) => {
    expect(compileGlob(pattern)(text)).toBe(isMatch);
  });

  test.each(["", "{a", "x".repeat(501), "{a,b}".repeat(7), "[z-a]"])("%j is refused", (pattern) => {
    expect(() => compileGlob(pattern)).toThrow(/[Pp]attern/);
  });

  test("full of wildcards is tried in a moment", () => {
    const startedAt = performance.now();
    expect(compileGlob(`${"*a".repeat(20)}b`)("a".repeat(2_000))).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(30_000);
  });
});
