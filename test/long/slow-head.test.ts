import { expect, test } from "vitest";
import { RawSocket } from "../helpers/raw-socket.ts";
import { openServer } from "../helpers/server.ts";

test("a head that takes longer than ten seconds is given up: 408", async () => {
  const url = await (await openServer({ in: "http" })).url();
  const socket = (await RawSocket.open(url)).send("POST /mcp HTTP/1.1\r\nhost: loc");
  expect(await socket.closed()).toMatch(/^HTTP\/1\.1 408 /);
});
