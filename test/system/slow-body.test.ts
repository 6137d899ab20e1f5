import { expect, test } from "vitest";
import { residentMiB } from "../helpers/daemon.ts";
import { RawSocket, toRequest } from "../helpers/raw-socket.ts";
import { openServer } from "../helpers/server.ts";

test("a body that comes byte by byte costs its bytes, and not an object for each of them", async () => {
  const server = await openServer({ in: "process" });
  const slow = await RawSocket.open(await server.url());
  const headers = { host: "localhost", "content-type": "application/json" };
  slow.send(toRequest("POST /mcp HTTP/1.1", { ...headers, "transfer-encoding": "chunked" }, ""));
  const client = await server.client("2026-07-28", { over: "http" });
  const megabytes = () => residentMiB(server.children[0]?.child.pid ?? 0);
  // Its first requests take memory of their own.
  for (let n = 0; n < 20; n++) await client.request("tools/list");
  const before = megabytes();
  const chunk = "1\r\nx\r\n".repeat(64 * 1024);
  for (let n = 0; n < 8; n++) {
    await new Promise((resolve) => slow.socket.write(chunk, resolve));
    expect((await client.request("tools/list")).result).toBeDefined();
  }
  // Kept one by one they take more than 200.
  expect(megabytes() - before, "MiB for 512 KiB").toBeLessThan(150);
});
