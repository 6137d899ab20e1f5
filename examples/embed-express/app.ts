import { setTimeout as sleep } from "node:timers/promises";
import express from "express";
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
  long: true,
  idempotent: true,
  async run({ quarter }, task) {
    for (let page = 1; page <= 4; page++) {
      await sleep(1000, undefined, { signal: task.signal });
      task.progress({ done: page, total: 4, message: `Page ${page} of 4` });
    }
    return { file: `${quarter}.pdf`, attempt: task.attempt };
  },
});

const users = new Map([
  ["Bearer key-of-ann", "ann"],
  ["Bearer key-of-bob", "bob"],
]);

const mcp = createServer({
  name: "reports",
  version: "1.0.0",
  commands: [list, build],
  store: process.env.STORE ?? "./data/tasks.db",
  identify({ headers }) {
    const id = users.get(headers.authorization ?? "");
    return id === undefined ? undefined : { kind: "app", id };
  },
});

const app = express();
app.use(express.json({ limit: "4mb" }));
app.get("/", (_request, response) => void response.send("The rest of the app"));
app.all("/mcp", mcp.node);

await mcp.ready();
const listener = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  const address = listener.address();
  if (typeof address === "object") console.log(`http://127.0.0.1:${address?.port}/mcp`);
});

process.once("SIGTERM", () => {
  listener.close();
  void mcp.close();
});
