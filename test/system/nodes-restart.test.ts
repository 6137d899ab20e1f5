import { expect, test } from "vitest";
import { connect, modernV2, newestV1, type TestClient } from "../helpers/clients.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { clientAt, startNodes } from "../helpers/nodes.ts";
import { gate } from "../helpers/project.ts";
import { startRoundRobin } from "../helpers/round-robin.ts";
import { handleOf } from "../helpers/wire.ts";

test("a node is taken out, stopped and replaced, and clients that stay connected see no error", async () => {
  const nodes = await startNodes(2);
  const proxy = await startRoundRobin(nodes.map(({ url }) => url));
  const [leaving, staying] = nodes as unknown as [(typeof nodes)[number], (typeof nodes)[number]];
  const sdkClients = await Promise.all([newestV1, modernV2].map((sdk) => connect(sdk, { url: proxy.url })));
  const wire = await clientAt(() => proxy.url, { revision: "2025-11-25", capabilities: { elicitation: {} } });
  for (const client of sdkClients) await client.subscribe();
  let isOver = false;
  const answered = sdkClients.map(() => 0);
  const busy = sdkClients.map((client, at) =>
    callUntil(
      client,
      () => isOver,
      (count) => {
        answered[at] = count;
      },
    ),
  );

  // One call works on the node that leaves, and one waits there for an answer; the session's stream is held there too.
  proxy.urls.splice(0, 2, leaving.url);
  const stream = await wire.openStream();
  const { input, open, seen, starts } = gate();
  const call = wire.startCall("work_reading", input);
  await seen("started");
  proxy.urls.splice(0, 1, staying.url);
  // What was sent to it before is answered, as a balancer lets it be: each has had one more answer than it was waiting for.
  const before = [...answered];
  await waitFor(() => answered.every((n, at) => n >= (before[at] ?? 0) + 2));
  const stopping = leaving.stop();
  const { job_id } = handleOf((await call.answer).result as never);
  await stopping;
  await stream.over;
  const fresh = await nodes.start();
  proxy.urls.push(fresh.url);

  // What is safe to run again goes on elsewhere, and its client finds it there.
  await seen("started", 2);
  open();
  const lastEventId = stream.events.at(-1)?.id;
  const next = await waitFor(async () => {
    const again = await wire.openStream(lastEventId);
    return again.status === 200 && again;
  });
  for (let n = 0; n < 2; n++)
    expect(await wire.call("task_result", { job_id, wait_seconds: 20 })).toMatchObject({
      structuredContent: { data: { passed: input.file } },
    });
  expect(starts()).toBe(2);
  next.drop();
  const sent = proxy.sent.length;
  await waitFor(() => new Set(proxy.sent.slice(sent).map(({ url }) => url)).size === 2);
  isOver = true;
  expect(await Promise.all(busy)).toEqual([expect.any(Number), expect.any(Number)]);
});

/** Calls one after the other; how many were answered. Throws for one that was not as on one node that stays. */
async function callUntil(
  client: TestClient,
  isOver: () => boolean,
  onAnswer: (count: number) => void,
): Promise<number> {
  for (let n = 0; ; n++) {
    if (isOver()) return n;
    const answer = await client.call("work_quick", { text: `call ${n}` });
    expect(answer.structuredContent).toMatchObject({ success: true, data: { text: `call ${n}` } });
    onAnswer(n + 1);
  }
}
