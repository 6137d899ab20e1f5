import { expect, test } from "vitest";
import { Gate } from "../helpers/gated.ts";
import { wrapHere } from "../helpers/gateway-here.ts";
import { httpUpstream } from "../helpers/upstreams.ts";
import { handleOf, type WireClient } from "../helpers/wire.ts";

const hasty = { hosts: { hasty: { limitSeconds: 0.12, isExtended: false } } };
const options = { revision: "2025-11-25", name: "hasty" };

const begin = async (client: WireClient, tool: string, input: object) =>
  handleOf(await client.call(tool, input)).job_id;

test.each(["2025", "2026"])(
  "15: the same call twice while it runs is one call of an upstream of %s; with other arguments, or one that only reads, it is two",
  async (era) => {
    const gate = new Gate();
    const { url, seen } = await httpUpstream("gated", { ...gate.env, ERA: era });
    const gateway = await wrapHere({ url }, hasty);
    const [one, other] = [await gateway.connect("stdio", options), await gateway.connect("stdio", options)];
    const first = await begin(one, "unsafe", { n: 1 });
    expect(await begin(one, "unsafe", { n: 1 })).toBe(first);
    expect(await begin(other, "unsafe", { n: 1 })).toBe(first);
    await gate.began(1);
    expect(gate.runs()).toEqual({ unsafe: 1 });
    expect(await begin(other, "unsafe", { n: 2 })).not.toBe(first);
    expect(await begin(one, "safe", { n: 1 })).not.toBe(await begin(other, "safe", { n: 1 }));
    await gate.began(4);
    expect(gate.runs()).toEqual({ unsafe: 2, safe: 2 });
    gate.open();
    const { content } = await other.call("task_result", { job_id: first });
    expect(JSON.stringify(content)).toContain("unsafe is done");
    expect(seen.filter(({ message }) => message.method === "tools/call")).toHaveLength(4);
    // It has ended, so that this is another.
    await one.call("unsafe", { n: 1 });
    expect(gate.runs()).toEqual({ unsafe: 3, safe: 2 });
  },
);

test("15: the same tool of two upstreams, with the same arguments, is two calls: what counts is the name that is served", async () => {
  const gate = new Gate();
  const [one, two] = [await httpUpstream("gated", gate.env), await httpUpstream("gated", gate.env)];
  const gateway = await wrapHere({ url: one.url }, hasty, { others: { url: two.url } });
  const client = await gateway.connect("stdio", options);
  const first = await begin(client, "theirs_unsafe", { n: 1 });
  expect(await begin(client, "others_unsafe", { n: 1 })).not.toBe(first);
  expect(await begin(client, "theirs_unsafe", { n: 1 })).toBe(first);
  await gate.began(2);
  expect(gate.runs()).toEqual({ unsafe: 2 });
  gate.open();
  await client.call("task_result", { job_id: first });
});
