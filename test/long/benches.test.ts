import { expect, test } from "vitest";
import { run, sectionsOf } from "../helpers/bench.ts";

// These start, and install, what they compare with.
test("every section runs to its end", { timeout: 3_600_000 }, () => {
  for (const section of sectionsOf()) {
    const { status, stderr } = run("run.mjs", "--quick", "--only", section);
    expect(status, `${section}: ${stderr}`).toBe(0);
  }
});
