import { expect, test } from "vitest";
import { system } from "../../src/system/system.ts";
import { rounds } from "../helpers/rounds.ts";
import { brokenBy, runWrapRounds } from "./wrap-rounds.ts";

// All 500 of them: npm run check:wrap.
const hosts = rounds.wrappingHosts;

test.runIf(system.platform === "linux")(
  `2: ${hosts} hosts come to wrap and leave it, half of them by kill -9, with and without calls that run: nothing of them is left`,
  { timeout: 300_000 },
  async () => {
    const report = await runWrapRounds({ rounds: hosts, warmUp: 4, parallel: 4 });
    expect(brokenBy(report, hosts)).toEqual([]);
    const each = hosts / 4;
    expect(report).toMatchObject({
      killed: hosts / 2,
      kinds: { looked: each, called: each, "in a call": each, "in a task": each },
    });
  },
);
