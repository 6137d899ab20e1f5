import { rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { check as ping } from "../../../src/diagnose/suites/protocol/ping.ts";
import { ask, piped, surveyed } from "../../helpers/diagnose.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { turns } from "../../helpers/in-memory.ts";

/** A server of 2025-06-18; `first` runs before it listens, and `meets` says what it does with server/discover. */
function server({ first = "", meets = "" }: { readonly first?: string; readonly meets?: string }) {
  const folder = writeFiles(temporaryFolder(), {
    "server.mjs": `import { closeSync, existsSync, openSync, rmSync } from "node:fs";
${first}
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
let rest = "";
process.stdin.setEncoding("utf8").on("data", (chunk) => {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const line of lines) {
    const { id, method } = JSON.parse(line);
    if (method === "server/discover") { ${meets} }
    if (method === "initialize") say({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "old", version: "1" } } });
    else if (method === "ping") say({ id, result: {} });
    else if (method === "tools/list") say({ id, result: { tools: [{ name: "look", inputSchema: { type: "object" } }] } });
    else if (id !== undefined) say({ id, error: { code: -32601, message: "Method not found" } });
  }
});
process.stdin.on("end", () => process.exit(0));
`,
  });
  return piped(process.execPath, path.join(folder, "server.mjs"));
}

test("a server that does not bear another beside it is met alone", async () => {
  const lock = path.join(temporaryFolder(), "lock");
  const first = `try { closeSync(openSync(${JSON.stringify(lock)}, "wx")); } catch { process.exit(1); }
process.on("exit", () => rmSync(${JSON.stringify(lock)}, { force: true }));
process.on("SIGTERM", () => process.exit(0));`;
  const facts = await surveyed(server({ first }));
  expect(facts.problem).toBeUndefined();
  expect(facts.legacy).toMatchObject({ revision: "2025-06-18", serverInfo: { name: "old" } });
  expect(facts.tools.map(({ name }) => name)).toEqual(["look"]);
});

test("a server that says nothing to a newer handshake is known by the older one", async () => {
  const begun = performance.now();
  const facts = await surveyed(server({ meets: "return;" }));
  expect(facts).toMatchObject({ modern: undefined, legacy: { revision: "2025-06-18" } });
  // Not after the fifteen seconds that a first answer may take.
  expect(performance.now() - begun).toBeLessThan(14_500);
});

test("a server that leaves at a newer handshake is known by the older one", async () => {
  const facts = await surveyed(server({ meets: "process.exit(1);" }));
  expect(facts).toMatchObject({ modern: undefined, legacy: { revision: "2025-06-18" } });
  expect(facts.tools).toHaveLength(1);
});

test("a server that takes six seconds to start is waited for, by the survey and by the checks after it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const gate = path.join(temporaryFolder(), "gate");
  const target = server({ first: `while (!existsSync(${JSON.stringify(gate)})) await new Promise(setImmediate);` });
  /** Six seconds pass for whoever waits, then its server starts. */
  const late = async <T>(waits: number, answer: Promise<T>) => {
    while (vi.getTimerCount() < waits) await turns();
    vi.advanceTimersByTime(6_000);
    writeFileSync(gate, "");
    const answered = await answer;
    rmSync(gate);
    return answered;
  };
  const facts = await late(2, surveyed(target));
  expect(facts.legacy?.startMs).toBeGreaterThan(5_000);
  expect(await late(1, ask(ping, target, { facts, requestMs: 2_000 }))).toEqual({ outcome: "passed" });
});
