import { expect, test } from "vitest";
import type { StdioServerTarget } from "../../src/diagnose/diagnosis-target.ts";
import { compare, diagnose } from "../../src/diagnose/index.ts";
import { piped } from "../helpers/diagnose.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { passTimeQuickly } from "../helpers/quick-time.ts";

passTimeQuickly();

const { argv } = piped("server.mjs") as StdioServerTarget;

test("diagnose() resolves with a report and compare() says what changed", async () => {
  const wish = { suites: ["completion"], privateFolder: temporaryFolder() } as const;
  const steps: string[] = [];
  const good = await diagnose({
    ...wish,
    command: argv,
    onStep: ({ question }) => steps.push(question),
  });
  const bad = await diagnose({ ...wish, command: [...argv, "--break", "completion/values"] });
  expect(good).toMatchObject({
    score: { grade: "A", points: 100 },
    findings: [],
    calls: expect.arrayContaining([{ tool: "read_clock", isNamed: false, outcome: "succeeded" }]),
  });
  expect(good.madeBy.version).toMatch(/^\d+\.\d+\.\d+/);
  expect(steps.at(-1)).toBe("Writing the report");
  expect(compare(good, bad).new.map(({ check }) => check)).toEqual(["completion/values"]);
});

test.each([
  [{}, "Say which server to diagnose"],
  [{ command: [] }, "Say which server to diagnose"],
  [{ url: "https://example.org/mcp", command: ["node"] }, "Say which server to diagnose"],
  [{ url: "ftp://example.org" }, "no http or https URL"],
  [{ url: "http://169.254.169.254/" }, "no public address"],
])("%j is refused in one sentence", async (options, sentence) => {
  await expect(diagnose(options)).rejects.toThrow(sentence);
});
