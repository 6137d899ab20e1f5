import { describe, expect, test, vi } from "vitest";
import { Gate } from "../../helpers/gated.ts";
import { type GatewayHere, wrapHere } from "../../helpers/gateway-here.ts";
import { commandUpstream, httpUpstream } from "../../helpers/upstreams.ts";
import { type CallOptions, resultOf, type WireClient } from "../../helpers/wire.ts";

const wait = { timeout: 50_000, interval: 20 };
const meta = { progressToken: "the client's" };

const progressOf = (client: WireClient) => client.of("notifications/progress").map(({ params }) => params ?? {});

/** Each is more than the one before, and all bear the client's own token. */
function expectRising(client: WireClient): void {
  const values = progressOf(client).map(({ progress }) => progress as number);
  expect(values).toEqual([...new Set(values)].toSorted((one, other) => one - other));
  expect(new Set(progressOf(client).map(({ progressToken }) => progressToken))).toEqual(new Set([meta.progressToken]));
}

/** A call that goes on until the gate is opened, and what it is answered with. */
async function follow(gateway: GatewayHere, gate: Gate, revision: string, options: CallOptions = { meta }) {
  const client = await gateway.connect("stdio", { revision });
  const { answer } = client.startCall("unsafe", {}, options);
  await client.comes("notifications/progress", ({ params }) => params?.message === "3");
  gate.open();
  return { client, result: resultOf(await answer) };
}

describe.each(["2025", "2026"])("11: an upstream of %s", (era) => {
  test.each(["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])(
    "11: says how far it is to a client of %s, by that one's token",
    async (revision) => {
      const gate = new Gate();
      const { url, seen } = await httpUpstream("gated", { ...gate.env, ERA: era });
      const { client, result } = await follow(await wrapHere({ url }), gate, revision);
      expect(JSON.stringify(result.content)).toContain("unsafe is done");
      expectRising(client);
      expect(progressOf(client).at(-1)).toMatchObject({ progress: 3, total: 4 });
      const sent = seen.find(({ message }) => message.method === "tools/call")?.message.params;
      expect(sent._meta.progressToken).not.toBe(meta.progressToken);
    },
  );

  test("11: says so of a task of 2025-11-25, too", async () => {
    const gate = new Gate();
    const { url } = await httpUpstream("gated", { ...gate.env, ERA: era });
    const { client, result } = await follow(await wrapHere({ url }), gate, "2025-11-25", { meta, task: {} });
    const { result: ended } = await client.request("tasks/result", { taskId: result.task?.taskId });
    expect(JSON.stringify(ended)).toContain("unsafe is done");
    expectRising(client);
  });

  test("11: that dies and runs again is never less far than it was", async () => {
    const gate = new Gate();
    const gateway = await wrapHere(commandUpstream("gated", { ...gate.env, ERA: era }));
    const client = await gateway.connect("stdio", { revision: "2025-11-25" });
    gate.arm();
    const { answer } = client.startCall("safe", {}, { meta });
    await client.comes("notifications/progress");
    await gate.began(2);
    gate.open();
    expect(JSON.stringify((await answer).result)).toContain("safe is done");
    expect(gate.runs()).toEqual({ safe: 2 });
    expectRising(client);
  });
});

test("11: an upstream that says nothing is waited for by a host that progress keeps waiting", async () => {
  const gate = new Gate();
  const { url } = await httpUpstream("gated", gate.env);
  const gateway = await wrapHere({ url }, { hosts: { patient: { limitSeconds: 0.6, isExtended: true } } });
  const client = await gateway.connect("stdio", { revision: "2025-11-25", name: "patient" });
  const { answer } = client.startCall("unsafe", {}, { meta });
  await client.comes("notifications/progress", ({ params }) => params?.message === "3");
  const said = progressOf(client).length;
  await vi.waitFor(() => expect(progressOf(client).length).toBeGreaterThan(said + 3), wait);
  gate.open();
  expect(JSON.stringify((await answer).result)).toContain("unsafe is done");
  expectRising(client);
});
