// One handler of web requests, in Hono, on Node's own listener.
import { serve } from "@hono/node-server";
import { Hono } from "hono";

export function serveFetch(handle) {
  const app = new Hono();
  app.all("/mcp", (context) => handle(context.req.raw));
  serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
    console.error(`http://127.0.0.1:${port}/mcp`),
  );
}
