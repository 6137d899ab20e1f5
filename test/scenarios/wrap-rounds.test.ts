import { expect, test } from "vitest";
import { system } from "../../src/system/system.ts";
import { brokenBy, runWrapRounds } from "./wrap-rounds.ts";

// All 500 of them: npm run check:wrap.
const rounds = 24;

test.runIf(system.platform === "linux")(
  `2: ${rounds} hosts come to wrap and leave it, half of them by kill -9, with and without calls that run: nothing of them is left`,
  { timeout: 300_000 },
  async () => {
    const report = await runWrapRounds({ rounds, warmUp: 8, parallel: 4 });
    expect(brokenBy(report, rounds)).toEqual([]);
    expect(report).toMatchObject({ killed: 12, kinds: { looked: 6, called: 6, "in a call": 6, "in a task": 6 } });
  },
);
