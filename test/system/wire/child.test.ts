import { once } from "node:events";
import { execPath } from "node:process";
import { expect, test } from "vitest";
import { endChild, startChild } from "../../../src/wire/child.ts";

const staying = "setInterval(() => {}, 1000);";

test.each([
  ["closing", ""],
  ["signal", staying],
  ["kill", `process.on("SIGTERM", () => {}); ${staying}`],
] as const)("a server is made to leave: it takes %s", async (took, words) => {
  const child = await startChild({
    command: execPath,
    args: ["-e", `${words} process.stdin.resume(); process.stdout.write("here");`],
  });
  const gone = once(child, "exit");
  await once(child.stdout, "data");
  // Who would leave is waited for; who stays is known to.
  const politeMs = took === "closing" ? 20_000 : 20;
  expect(await endChild(child, { gone, politeMs, signalMs: took === "signal" ? 20_000 : 20 })).toBe(took);
  await gone;
});

test("one that cannot be started is named", async () => {
  await expect(startChild({ command: "no-such-command-anywhere", args: [] })).rejects.toMatchObject({
    message: expect.stringContaining(
      "The server no-such-command-anywhere cannot be started: there is no such command or working folder; name one that is installed",
    ),
    isUnsent: true,
    isPassing: false,
  });
});
