import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import {
  connect,
  type ListedTool,
  modernV2,
  newestV1,
  type Sdk,
  type TestClient,
  type TransportName,
} from "../helpers/clients.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { openServer, placeOf } from "../helpers/server.ts";

const ping = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Answer", run: () => "pong" });
`;

const greeting = (word: string) => `export const greeting: string = ${JSON.stringify(word)};\n`;

test("a client hears of a command that is written, edited, broken, repaired and removed", async () => {
  const project = writeFiles(temporaryFolder(), { "commands/other/ping.ts": ping });
  const file = path.join(project, "commands/hello/world.ts");
  const server = await openServer({ in: "memory", cwd: project, commands: path.join(project, "commands") });
  const client = await connect(newestV1, await server.target());
  await client.subscribe();
  const [other] = await client.listTools();
  expect(other?.name).toBe("other_ping");

  const write = () => runMeanwhile(["new", "hello/world"], { cwd: project });
  const written = await toolsAfter(client, write, (tools) => tools.length > 1);
  expect(written.map((tool) => tool.name)).toEqual(["hello_world", "other_ping"]);
  expect(written[1]).toEqual(other);
  expect(await greet(client)).toBe("Hello, Ada!");

  const text = readFileSync(file, "utf8");
  const edited = text.replace(/summary: ".*"/, 'summary: "Greet somebody"');
  const edit = () => writeFileSync(file, edited);
  await toolsAfter(client, edit, (tools) => tools[0]?.description === "Greet somebody");

  const importing = `import { greeting } from "./_greeting.ts";\n${edited.replace("`Hello, ", "greeting + `, ")}`;
  writeFiles(project, {
    "commands/hello/_greeting.ts": greeting("Good morning"),
    "commands/hello/world.ts": importing,
  });
  await expect.poll(() => greet(client), { timeout: 40_000 }).toBe("Good morning, Ada!");
  writeFiles(project, { "commands/hello/_greeting.ts": greeting("Good night") });
  await expect.poll(() => greet(client), { timeout: 40_000 }).toBe("Good night, Ada!");

  const spoil = () => writeFileSync(file, importing.replace("async run(", "async run(("));
  const left = await toolsAfter(client, spoil, (tools) => tools.length === 1);
  expect(left).toEqual([other]);
  const answer = await client.call("other_ping");
  expect(answer.isError ?? false).toBe(false);
  expect(answer.content[0]?.text).toContain("pong");
  const refusal = await client.call("hello_world", { name: "Ada" });
  expect(refusal.isError).toBe(true);
  expect(refusal.content[0]?.text).toContain(path.join("hello", "world.ts"));

  const repair = () => writeFileSync(file, importing);
  const repaired = await toolsAfter(client, repair, (tools) => tools.length === 2);
  expect(repaired.map((tool) => tool.description)).toEqual(["Greet somebody", "Answer"]);
  expect(await greet(client)).toBe("Good night, Ada!");

  const remove = () => rmSync(file);
  expect(await toolsAfter(client, remove, (tools) => tools.length === 1)).toEqual([other]);
  await expect(client.call("hello_world", { name: "Ada" })).rejects.toMatchObject({ code: -32602 });
  expect(client.errors).toEqual([]);
});

/** Each hears of it in another way. */
const others: readonly { sdk: Sdk; transport: TransportName }[] = [
  { sdk: newestV1, transport: "HTTP" },
  { sdk: modernV2, transport: "stdio" },
  { sdk: modernV2, transport: "HTTP" },
];

for (const { sdk, transport } of others) {
  test(`${sdk.title} over ${transport} hears of a command that is written and removed`, async () => {
    const project = writeFiles(temporaryFolder(), { "commands/other/ping.ts": ping });
    const server = await openServer({ in: placeOf[transport], cwd: project, commands: path.join(project, "commands") });
    const client = await connect(sdk, await server.target());
    await client.subscribe();
    const [other] = await client.listTools();
    const write = () => writeFiles(project, { "commands/hello/world.ts": ping });
    const written = await toolsAfter(client, write, (tools) => tools.length > 1);
    expect(written.map((tool) => tool.name)).toEqual(["hello_world", "other_ping"]);
    expect((await client.call("hello_world")).content[0]?.text).toContain("pong");
    const remove = () => rmSync(path.join(project, "commands/hello/world.ts"));
    expect(await toolsAfter(client, remove, (tools) => tools.length === 1)).toEqual([other]);
    expect(client.errors).toEqual([]);
  });
}

test("a folder of commands behind a symbolic link is followed like any other", async () => {
  const project = writeFiles(temporaryFolder(), { "real/hello/world.ts": ping });
  symlinkSync(path.join(project, "real"), path.join(project, "linked"));
  const server = await openServer({ in: "memory", cwd: project, commands: path.join(project, "linked") });
  const client = await connect(newestV1, await server.target());
  expect((await client.call("hello_world")).content[0]?.text).toContain("pong");
  const edit = () =>
    writeFiles(project, { "real/hello/world.ts": ping.replace("Answer", "Answer loudly").replace("pong", "PONG") });
  await toolsAfter(client, edit, (tools) => tools[0]?.description === "Answer loudly");
  expect((await client.call("hello_world")).content[0]?.text).toContain("PONG");
});

/**
 * Does something to the files, then lists the tools each time the server says that they changed, until they are as
 * wanted.
 */
async function toolsAfter(
  client: TestClient,
  act: () => unknown,
  isWanted: (tools: readonly ListedTool[]) => boolean,
): Promise<readonly ListedTool[]> {
  let heard = client.listChanges();
  await act();
  for (;;) {
    await waitFor(
      () => client.listChanges() > heard,
      () => "the server never said that its tools are as they should be now",
    );
    heard = client.listChanges();
    const tools = (await client.listTools()).filter(({ name }) => !name.startsWith("task_"));
    if (isWanted(tools)) return tools;
  }
}

async function greet(client: TestClient): Promise<string> {
  const result = await client.call("hello_world", { name: "Ada" });
  return (result.structuredContent as { data: { greeting: string } }).data.greeting;
}
