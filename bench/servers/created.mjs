// A server made in code, with createServer(), in Hono.
import { createServer, defineCommand } from "../../dist/index.js";
import { z } from "../../dist/zod.js";
import { serveFetch } from "./in-hono.mjs";

const echo = defineCommand({
  name: "echo text",
  summary: "Give a text back",
  input: z.object({ text: z.string() }),
  output: z.object({ text: z.string() }),
  effects: "read",
  run: ({ text }) => ({ text }),
});
const server = createServer({ name: "bench", version: "1.0.0", commands: [echo] });
serveFetch(server.fetch);
