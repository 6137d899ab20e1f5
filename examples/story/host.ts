// Stands in for an MCP host: starts the server as hosts do, over stdio, and waits for one result.
//   node host.ts call '{"quarter":"Q3",…}'     node host.ts resume <task id>
import path from "node:path";
import { connect, type FollowOptions } from "meanwhile/client";

const [what, given = ""] = process.argv.slice(2);
const meanwhile = path.resolve(import.meta.dirname, "../../bin/meanwhile.cjs");
const client = await connect({ command: process.execPath, args: [meanwhile, "serve"], cwd: import.meta.dirname });

const say = (word: string, value: unknown) => process.stdout.write(`${JSON.stringify({ [word]: value })}\n`);
const options: FollowOptions = {
  onTask: ({ taskId }) => say("task", taskId),
  onProgress: ({ done, total = 1, message }) => say("progress", { share: done / total, message }),
};
const result =
  what === "call"
    ? await client.callTool("report_build", JSON.parse(given), options)
    : await client.task(given).result(options);
say("result", result.structuredContent);
await client.close();
