import path from "node:path";
import { expect, test } from "vitest";
import { connect, followUps, sdks } from "../helpers/clients.ts";
import { openServer } from "../helpers/server.ts";

// Each SDK client once over the stdio of a child process. test/scenarios/clients.test.ts has the details.
const commands = path.resolve(import.meta.dirname, "../fixtures/clients/commands");

test.each(sdks.map((sdk) => [sdk.title, sdk] as const))(
  "%s lists the tools, calls one and sees its progress over the stdio of a child process",
  // An SDK client drops progress that it reads in one chunk with the answer.
  { retry: 3 },
  async (_title, sdk) => {
    const server = await openServer({ in: "process", commands });
    const client = await connect(sdk, await server.target());
    const tools = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "notes_erase",
      "text_bare",
      "text_shout",
      "work_count",
      "work_wait",
      ...followUps("stdio"),
    ]);
    const values: number[] = [];
    const counted = await client.call(
      "work_count",
      { to: 25 },
      { onprogress: ({ progress }) => void values.push(progress) },
    );
    expect(counted.isError ?? false).toBe(false);
    expect(values.at(-1)).toBe(25);
    expect(client.errors).toEqual([]);
  },
);
