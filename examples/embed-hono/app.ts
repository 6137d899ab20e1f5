import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { createServer, defineCommand } from "meanwhile";
import { z } from "zod";

const list = defineCommand({
  name: "report list",
  summary: "Lists the quarters",
  effects: "read",
  run: () => ({ quarters: ["Q1", "Q2", "Q3"] }),
});

const build = defineCommand({
  name: "report build",
  summary: "Builds the report of a quarter",
  input: z.object({ quarter: z.string() }),
  async run({ quarter }, task) {
    await sleep(4000, undefined, { signal: task.signal });
    return { file: `${quarter}.pdf` };
  },
});

const mcp = createServer({
  name: "reports",
  version: "1.0.0",
  commands: [list, build],
  deferral: { patienceSeconds: 2 },
});

const app = new Hono();
app.use("/mcp", bearerAuth({ token: "key-of-the-team" }));
app.all("/mcp", (c) => mcp.fetch(c.req.raw, { caller: { kind: "app", id: "the team" } }));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000), hostname: "127.0.0.1" }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}/mcp`),
);
