import { setTimeout as sleep } from "node:timers/promises";
import { FastMCP } from "fastmcp";
import { durable } from "meanwhile";
import { z } from "zod";

const server = new FastMCP({ name: "reports", version: "1.0.0" });

server.addTool({
  name: "report_list",
  description: "Lists the quarters",
  annotations: { readOnlyHint: true },
  execute: async () => "Q1, Q2, Q3",
});

server.addTool({
  name: "report_build",
  description: "Builds the report of a quarter",
  parameters: z.object({ quarter: z.string() }),
  async execute({ quarter }, { reportProgress }) {
    for (let progress = 1; progress <= 6; progress++) {
      await sleep(1000);
      await reportProgress({ progress, total: 6 });
    }
    return `${quarter}.pdf`;
  },
});

// Before: await server.start({ transportType: "stdio" });
await durable(server, { hosts: { hasty: { limitSeconds: 6 } } }).stdio();
