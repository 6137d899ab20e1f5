import path from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { openServer } from "../../helpers/server.ts";
import { waitFor } from "../../helpers/wait-for.ts";

const commands = path.resolve(import.meta.dirname, "../../fixtures/leftovers/commands");

test("a command whose own process is killed is answered with a sentence, and leaves no row", async () => {
  const server = await openServer({ in: "process", commands });
  const client = await server.client("2025-11-25");
  const [alive, dead] = await Promise.all(
    [true, false].map((lives) => client.request("tools/call", { name: "child_die", arguments: { lives } })),
  );
  expect(alive?.result?.structuredContent).toMatchObject({ success: true });
  const sentence = "Its process ended by itself (SIGKILL).";
  expect(dead?.result).toMatchObject({
    isError: true,
    structuredContent: { success: false, data: {}, messages: [{ type: "error", text: sentence }] },
  });
  expect(dead?.result?.content[0].text).toContain(sentence);
  const db = new Database(path.join(server.home, "tasks.db"), { readonly: true });
  try {
    await waitFor(() => db.prepare("select count(*) from tasks").pluck().get() === 0);
  } finally {
    db.close();
  }
});
