import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../src/client/index.ts";

import { ProtocolError } from "../../src/errors.ts";
import { foreign } from "../helpers/foreign.ts";
import { openServer } from "../helpers/server.ts";

const answer = {
  zeta: 1,
  content: [{ type: "text", text: "Ho" }],
  structuredContent: { success: false, data: 1, messages: [] },
  _meta: { "their/key": 1 },
};
const refusal = { content: [{ type: "text", text: "No." }], isError: true };

async function manyTurns(): Promise<void> {
  for (let turn = 0; turn < 1_000; turn++) await new Promise(setImmediate);
}

/** Long, so that every client follows it in its own way. */
const commands = {
  their_answer: foreign(async () => manyTurns().then(() => answer), {}, { long: true }),
  their_refusal: foreign(async () => manyTurns().then(() => refusal), {}, { long: true }),
  their_error: foreign(
    async () => {
      await manyTurns();
      throw new ProtocolError(-32_042, "Needs a link", { list: [1] });
    },
    {},
    { long: true },
  ),
};

async function open(revision: string) {
  const server = await openServer({ in: "http", commands, settings: { prompts: false } });
  const headers = { authorization: `Bearer ${server.token()}` };
  const client = await connect({ url: await server.url(), headers }, { revision });
  onTestFinished(() => client.close());
  return client;
}

test.each(["2025-06-18", "2025-11-25", "2026-07-28"])(
  "a client of ours gets a foreign result word for word by %s",
  async (revision) => {
    const client = await open(revision);
    const {
      _meta,
      resultType: _type,
      ...given
    } = (await client.callTool("their_answer")) as unknown as Record<string, unknown>;
    const { _meta: theirs, ...expected } = answer;
    expect(JSON.stringify(given)).toBe(JSON.stringify(expected));
    expect(_meta).toMatchObject(theirs);
    expect(await client.callTool("their_refusal")).toMatchObject(refusal);
    await expect(client.callTool("their_error")).rejects.toMatchObject({ code: -32_042, data: { list: [1] } });
  },
);
