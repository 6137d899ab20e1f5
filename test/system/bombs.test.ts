import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { endlessPdf, laughingNote, packedPdf, recursivePdf } from "../fixtures/pack/bombs.ts";
import { runMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { resultOf } from "../helpers/wire.ts";
import {
  byMemory,
  callWatched,
  isRunning,
  maxMb,
  openPlace,
  openServer,
  readersOf,
  readQuietly,
  refused,
  server,
  transformed,
  watched,
} from "./document-bombs.ts";

/** Limit for a cancel, which takes a few milliseconds. Without it a document would take up to a minute. */
const maxCancelMs = 30_000;

describe("a document that is a bomb is refused in one sentence, and nobody else notices", () => {
  test.for(refused)("%s", async ([_title, name, make, sentence, input]) => {
    const { text } = await transformed(name, make(), input);
    expect(text).toContain(`${name} was not transformed: ${sentence}`);
  });

  test.each([
    ["a PDF whose forms draw one another without end", "forms.pdf", recursivePdf],
    ["an HTML of 5 MB of <", "open.html", () => "<".repeat(5_000_000)],
    ["a Markdown note whose front matter multiplies itself", "laughs.md", laughingNote],
    [
      "a Markdown note with front matter nested 10,000 deep",
      "deep.md",
      () => `---\n${"[".repeat(10_000)}\n---\n# Still a note\n`,
    ],
  ])("%s is read as far as there is something to read", async (_title, name, make) => {
    const { data } = await transformed(name, make());
    expect(data).toMatchObject({ source: expect.stringContaining(name), characters: expect.any(Number) });
  });

  test("one of them costs no other document of a batch, an ingest or a vault", async () => {
    const { folder } = await server();
    const notes = path.join(folder, "notes");
    mkdirSync(notes);
    const files = {
      "a.md": "# A\n[[b]]",
      "b.md": "# B",
      "links.md": "[[a]]".repeat(20_000),
      "packed.pdf": packedPdf(512),
      "c.json": '{"c":1}',
    };
    for (const [name, content] of Object.entries(files)) writeFileSync(path.join(notes, name), content);
    const batch = await callWatched("transform_batch", { glob: `${notes}/*` });
    expect(batch.data).toMatchObject({
      files_transformed: 4,
      errors_total: 1,
      errors: [{ reason: byMemory.slice(0, -1) }],
    });
    const ingest = await callWatched("ingest_sources", { paths: [notes] });
    expect(ingest.data).toMatchObject({
      files_ingested: 4,
      errors_total: 1,
      errors: [{ reason: byMemory.slice(0, -1) }],
    });
    const vault = await callWatched("vault_index", { path: notes });
    expect(vault.data).toMatchObject({
      errors_total: 1,
      errors: [{ reason: "it has more than 10000 links; the setting pack.documentParts allows more" }],
    });
    expect((await callWatched("vault_links", { note: "b" })).data).toMatchObject({ total: 1 });
  });

  test("a text of many megabytes is made searchable, a little at a time", async () => {
    const { folder } = await server();
    const file = path.join(folder, "long.txt");
    writeFileSync(file, "Some words of which there are many, one after the other.\n".repeat(150_000));
    expect((await callWatched("ingest_sources", { paths: [file], chunk_size: 2_000 })).data).toMatchObject({
      files_ingested: 1,
      errors_total: 0,
    });
  });

  test("two at a time stay within the same bounds, and a third document is read meanwhile", async () => {
    const { client, folder } = await server();
    for (const name of ["one.pdf", "two.pdf"]) writeFileSync(path.join(folder, name), packedPdf(512));
    writeFileSync(path.join(folder, "small.txt"), "small");
    const { result, peakMb } = await watched(
      Promise.all(
        ["one.pdf", "two.pdf", "small.txt"].map((name) => client.call("transform", { file: path.join(folder, name) })),
      ),
    );
    expect(result.map(({ isError }) => isError === true)).toEqual([true, true, false]);
    expect(peakMb).toBeLessThan(maxMb);
  });
});

describe("the process that reads a document", () => {
  test("is ended at once by a cancel, and has no secrets", async () => {
    const { client, daemon, folder } = await server();
    writeFileSync(path.join(folder, "endless.pdf"), endlessPdf(9_000));
    const { id } = client.startCall("transform", { file: path.join(folder, "endless.pdf") });
    const reader = await busyReader(daemon);
    const names = readQuietly(`/proc/${reader}/environ`)
      .split("\0")
      .map((entry) => entry.split("=")[0]);
    expect(
      names.filter(
        (name) => name !== "" && !["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "NODE_COMPILE_CACHE"].includes(name ?? ""),
      ),
    ).toEqual([]);
    const startedAt = performance.now();
    client.cancel(id);
    await waitFor(() => !isRunning(reader));
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeLessThan(maxCancelMs);
    // The next document gets another.
    writeFileSync(path.join(folder, "next.txt"), "next");
    expect(
      resultOf(await client.startCall("transform", { file: path.join(folder, "next.txt") }).answer).isError,
    ).not.toBe(true);
  });

  test("ends with the server, also when that is killed and the document keeps it busy", async () => {
    const { client, daemon, folder } = await openServer();
    // Code that is never closed, each time with another mark: one look to the end for each, and not a moment for
    // anything else.
    const note = Array.from({ length: 5_000 }, (_, at) => "`".repeat(at)).join(" ");
    writeFileSync(path.join(folder, "busy.md"), note);
    client.startCall("transform", { file: path.join(folder, "busy.md") });
    const reader = await busyReader(daemon);
    process.kill(daemon, "SIGKILL");
    await waitFor(
      () => !isRunning(reader),
      () => "the process that reads went on",
      25_000,
    );
  });

  test("has as long as the setting says, in a terminal too", async () => {
    const { folder, home } = openPlace({ documentSeconds: 1 });
    writeFileSync(path.join(folder, "endless.pdf"), endlessPdf(9_000));
    const env = { MEANWHILE_HOME: home, MEANWHILE_PACK_ROOTS: folder };
    expect(await runMeanwhile(["transform", "endless.pdf"], { cwd: folder, env })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(
        "endless.pdf was not transformed: reading it takes longer than 1 seconds; the setting pack.documentSeconds allows more.",
      ),
    });
  });
});

/** The process that reads a document, once it is at it: it has used more than a start takes. */
async function busyReader(daemon: number): Promise<number> {
  return await waitFor(() => readersOf(daemon).find((pid) => ticksOf(pid) > 60));
}

/** Hundredths of a second on the processor. */
function ticksOf(pid: number): number {
  const fields = readQuietly(`/proc/${pid}/stat`).split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
}
