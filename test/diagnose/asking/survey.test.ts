import { expect, test } from "vitest";
import { systemClock as clock, sleep } from "../../../src/clock.ts";
import { check as ping } from "../../../src/diagnose/suites/protocol/ping.ts";
import { readLines } from "../../../src/wire/line-link.ts";
import type { Message } from "../../../src/wire/message.ts";
import { ask, piped, surveyed } from "../../helpers/diagnose.ts";
import { ownProgram, type Program, type ProgramContext } from "../../helpers/programs.ts";
import { passTimeQuickly } from "../../helpers/quick-time.ts";

passTimeQuickly();

/** A server of 2025-06-18. `first` runs before it listens, and `meets` says what it does with server/discover. */
function server({
  first,
  meets = () => "refuse",
}: {
  readonly first?: Program;
  readonly meets?: (context: ProgramContext) => "refuse" | "ignore";
}) {
  return piped(
    ...ownProgram(async (context) => {
      await first?.(context);
      const { stdin, stdout, exit } = context;
      const answers: Readonly<Record<string, object>> = {
        initialize: {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: "old", version: "1" },
        },
        ping: {},
        "tools/list": { tools: [{ name: "look", inputSchema: { type: "object" } }] },
      };
      const onMessage = ({ id, method = "" }: Message) => {
        if (id === undefined || (method === "server/discover" && meets(context) === "ignore")) return;
        const error = { code: -32601, message: "Method not found" };
        const answer = answers[method] === undefined ? { error } : { result: answers[method] };
        stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
      };
      readLines(stdin, { onMessage, onClose: () => {} });
      stdin.on("end", () => exit(0));
    }),
  );
}

test("a server that does not bear another beside it is met alone", async () => {
  let isLocked = false;
  const facts = await surveyed(
    server({
      first: ({ exit, ended, signals }) => {
        if (isLocked) return exit(1);
        isLocked = true;
        ended.addEventListener("abort", () => (isLocked = false));
        signals.on("SIGTERM", () => exit(0));
      },
    }),
  );
  expect(facts.problem).toBeUndefined();
  expect(facts.legacy).toMatchObject({ revision: "2025-06-18", serverInfo: { name: "old" } });
  expect(facts.tools.map(({ name }) => name)).toEqual(["look"]);
});

test("a server that says nothing to a newer handshake is known by the older one", async () => {
  const begun = performance.now();
  const facts = await surveyed(server({ meets: () => "ignore" }));
  expect(facts).toMatchObject({ modern: undefined, legacy: { revision: "2025-06-18" } });
  // After the answer to the older handshake, not after the fifteen seconds that a first answer may take.
  expect(performance.now() - begun - (facts.legacy?.startMs ?? 0)).toBeLessThan(14_500);
});

test("a server that leaves at a newer handshake is known by the older one", async () => {
  const facts = await surveyed(
    server({
      meets: ({ exit }) => {
        exit(1);
        return "ignore";
      },
    }),
  );
  expect(facts).toMatchObject({ modern: undefined, legacy: { revision: "2025-06-18" } });
  expect(facts.tools).toHaveLength(1);
});

test("a server that takes six seconds to start is waited for, by the survey and by the checks after it", async () => {
  const target = server({ first: () => sleep(clock, 6_000) });
  const facts = await surveyed(target);
  expect(facts.legacy?.startMs).toBeGreaterThan(5_000);
  expect(await ask(ping, target, { facts, requestMs: 2_000 })).toEqual({ outcome: "passed" });
});
