import { expect, test } from "vitest";
import { serveHttpHere } from "../helpers/in-process.ts";
import { RawSocket } from "../helpers/raw-socket.ts";

test("a head that takes longer than ten seconds is given up: 408", async () => {
  const { url } = await serveHttpHere(["--no-bundled"]);
  const socket = (await RawSocket.open(url)).send("POST /mcp HTTP/1.1\r\nhost: loc");
  expect(await socket.closed()).toMatch(/^HTTP\/1\.1 408 /);
});
