import { execFile } from "node:child_process";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { connect } from "../../../../src/client/index.ts";
import { oddServer } from "../../../client/odd-server.ts";
import { waitFor } from "../../../helpers/wait-for.ts";

test("a server that cannot be started is named", async () => {
  await expect(connect({ command: "no-such-command-anywhere" })).rejects.toThrow(
    "The server no-such-command-anywhere cannot be started: there is no such command",
  );
});

describe("a server that was started is not left behind", () => {
  const script = (target: object, way: string) => `
    const { connect } = await import(${JSON.stringify(path.resolve(import.meta.dirname, "../../../../src/client/index.ts"))});
    const client = await connect(${JSON.stringify(target)});
    ${way}`;

  test.each([
    ["by process.exit()", "process.exit(0);"],
    ["by an error that nobody caught", 'throw new Error("a bug");'],
  ])("when its program ends %s", async (_, way) => {
    const server = oddServer("stays");
    await new Promise((resolve) =>
      execFile(process.execPath, ["--input-type=module", "-e", script(server.target, way)], resolve),
    );
    await waitFor(
      () => server.starts().length === 1 && server.running().length === 0,
      () => `still there: ${server.starts().join(", ")}`,
    );
  });
});
