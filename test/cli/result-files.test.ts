import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { runCli } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openServer } from "../helpers/server.ts";

/** `--out <file>` writes the images and files of a result. */

const draw = `import { content, defineCommand, image, link } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Draw a chart", effects: "read",
  input: z.object({ images: z.number().default(1) }),
  run: ({ images }) => content(
    "The chart:",
    ...Array.from({ length: images }, (_, at) => image(new Uint8Array([0x89, at]), "image/png")),
    link("file:///report.html", "The report"),
  ),
});
`;
const files = `import { content, defineCommand } from "meanwhile";
export default defineCommand({
  summary: "Give files", effects: "read",
  run: () => content(
    { type: "resource", resource: { uri: "file:///a.csv", mimeType: "text/csv", text: "a,b\\n" } },
    { type: "resource", resource: { uri: "file:///b.bin", blob: "AAEC" } },
    { type: "audio", data: "AAEC", mimeType: "audio/wav" },
  ),
});
`;
const commands = { "commands/chart/draw.ts": draw, "commands/chart/files.ts": files };

function project() {
  const cwd = writeFiles(temporaryFolder(), commands);
  const type = (...words: string[]) => runCli(words, { cwd, env: { MEANWHILE_HOME: path.join(cwd, "home") } });
  const read = (name: string) => [...readFileSync(path.join(cwd, name))];
  return { cwd, type, read };
}

describe("of a command", () => {
  test("one image goes to the file, and is not named among the data", async () => {
    const { cwd, type, read } = project();
    expect(await type("chart", "draw", "--out", "chart.png")).toMatchObject({
      code: 0,
      stdout: "The chart:\nThe report: file:///report.html\n",
      stderr: expect.stringMatching(new RegExp(`✓ Wrote ${cwd}/chart\\.png \\(image/png, 2 bytes\\)\\n$`)),
    });
    expect(read("chart.png")).toEqual([0x89, 0]);
  });

  test("further ones get numbers, and the file that was named is replaced", async () => {
    const { cwd, type, read } = project();
    writeFiles(cwd, { "chart.png": "old" });
    expect(await type("chart", "draw", "--images", "3", "--out", "chart.png", "--quiet")).toMatchObject({
      code: 0,
      stderr: "",
    });
    expect([read("chart.png"), read("chart-2.png"), read("chart-3.png")]).toEqual([
      [0x89, 0],
      [0x89, 1],
      [0x89, 2],
    ]);
  });

  test("further ones replace no file, and get the next free number", async () => {
    const { cwd, type, read } = project();
    writeFiles(cwd, { "chart-2.png": "mine" });
    symlinkSync(path.join(cwd, "gone"), path.join(cwd, "chart-4.png"));
    const { code, stderr } = await type("chart", "draw", "--images", "3", "--out", "chart.png");
    expect([code, stderr.match(/chart[-\d]*\.png/g)]).toEqual([0, ["chart.png", "chart-3.png", "chart-5.png"]]);
    expect([Buffer.from(read("chart-2.png")).toString(), read("chart-3.png"), read("chart-5.png")]).toEqual([
      "mine",
      [0x89, 1],
      [0x89, 2],
    ]);
    expect(existsSync(path.join(cwd, "gone"))).toBe(false);
  });

  test("at most 100 are written", async () => {
    const { cwd, type } = project();
    expect(await type("chart", "draw", "--images", "101", "--out", "c.png", "--quiet")).toMatchObject({
      code: 1,
      stderr: "✗ The result has 101 images and files; --out wrote the first 100 of them.\n",
    });
    expect(readdirSync(cwd).filter((name) => name.endsWith(".png"))).toHaveLength(100);
  });

  test("a folder that has all the numbers gets the first file only", async () => {
    const { cwd, type } = project();
    const taken = Array.from({ length: 999 }, (_, at) => [`c-${at + 2}.png`, ""]);
    writeFiles(cwd, Object.fromEntries(taken) as Record<string, string>);
    expect(await type("chart", "draw", "--images", "2", "--out", "c.png")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `The files ${cwd}/c-2.png to ${cwd}/c-1000.png exist already. Remove some, or give --out another name.`,
      ),
    });
  });

  test("files with text or bytes, and sounds, are written too", async () => {
    const { type, read } = project();
    expect(await type("chart", "files", "--out", "f")).toMatchObject({ code: 0, stdout: "" });
    expect(Buffer.from(read("f")).toString()).toBe("a,b\n");
    expect([read("f-2"), read("f-3")]).toEqual([
      [0, 1, 2],
      [0, 1, 2],
    ]);
  });

  test("that ran as a task", async () => {
    const { type, read } = project();
    expect(await type("chart", "draw", "--async", "--out", "a.png")).toMatchObject({ code: 0 });
    expect(read("a.png")).toEqual([0x89, 0]);
    const { tasks } = JSON.parse((await type("tasks", "list", "--json")).stdout) as { tasks: { taskId: string }[] };
    const result = await type("tasks", "result", tasks[0]?.taskId ?? "", "--out", "b.png");
    expect(result).toMatchObject({ code: 0, stderr: expect.stringContaining("✓ Wrote ") });
    expect(read("b.png")).toEqual([0x89, 0]);
  });

  test("with an argument `out` of its own leaves --out to the command", async () => {
    const own = `import { content, defineCommand, image } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "x", input: z.object({ out: z.string() }), positional: [],
  run: ({ out }) => content("to " + out, image(new Uint8Array([1]), "image/png")),
});
`;
    const { cwd, type } = project();
    writeFiles(cwd, { "commands/chart/own.ts": own });
    expect(await type("chart", "own", "--out", "none/x.png")).toMatchObject({
      code: 0,
      stdout: "to none/x.png\n[image/png, 1 bytes; --out <file> writes it]\n",
    });
  });

  test("without an image or a file ends with 1, and writes nothing", async () => {
    const { cwd, type } = project();
    expect(await type("chart", "draw", "--images", "0", "--out", "none.png")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("The chart:\n"),
      stderr: expect.stringContaining(`✗ The result has no image or file, so ${cwd}/none.png was not written.\n`),
    });
    expect(existsSync(path.join(cwd, "none.png"))).toBe(false);
  });
});

describe("where nothing can be written, nothing runs", () => {
  test.each([
    ["", "--out is empty; give the file to write."],
    ["folder", "--out folder is a folder; give a file in it."],
    ["none/x.png", /^--out none\/x\.png: there is no folder \/.*\/none; create it first\.$/],
  ])("%j", async (out, sentence) => {
    const { cwd, type } = project();
    mkdirSync(path.join(cwd, "folder"));
    const before = readdirSync(cwd);
    for (const words of [
      ["chart", "draw"],
      ["chart", "draw", "--async"],
      ["call", ".", "chart_draw"],
    ]) {
      const { code, stderr } = await type(...words, "--out", out);
      expect(code, words.join(" ")).toBe(2);
      expect(stderr.replace(/^✗ |\n$/g, "")).toEqual(
        typeof sentence === "string" ? sentence : expect.stringMatching(sentence),
      );
    }
    expect(readdirSync(cwd).filter((name) => !before.includes(name) && name !== "home")).toEqual([]);
  });
});

const served = shareAmongTests(() =>
  openServer({ in: "http", projectCommands: "alone", cwd: writeFiles(temporaryFolder(), commands) }),
);

test("of a server's tool, for `call`", async () => {
  const server = await served();
  const cwd = temporaryFolder();
  const env = { MEANWHILE_HOME: path.join(cwd, "home"), THE_TOKEN: server.token() };
  const words = ["call", await server.url(), "chart_draw", "images=2", "--token-env", "THE_TOKEN", "--out", "c.png"];
  expect(await runCli(words, { cwd, env })).toMatchObject({ code: 0, stdout: expect.stringMatching(/^The chart:\n/) });
  expect(readdirSync(cwd).filter((name) => name.endsWith(".png"))).toEqual(["c-2.png", "c.png"]);
});
