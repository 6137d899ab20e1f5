import { describe, expect, test } from "vitest";
import type { UserConfig } from "../../src/config.ts";
import { changeableBy } from "../../src/settings/check-config.ts";

describe("who may change a setting", () => {
  /** Every setting there is: a new one has to be put here, and is closed to tools unless somebody opens it. */
  const settings: Record<keyof UserConfig, "tool" | "person"> = {
    name: "tool",
    instructions: "tool",
    toolPrefix: "tool",
    logLevel: "tool",
    deferral: "tool",
    hosts: "tool",
    followUpTools: "tool",
    errorsAsCompleted: "tool",
    prompts: "tool",
    commands: "person",
    env: "person",
    bundled: "person",
    mcp: "person",
    http: "person",
    diagnose: "person",
    pack: "person",
    graceSeconds: "person",
    logFiles: "person",
    questionSeconds: "person",
  };

  test.each(Object.entries(settings))("%s: %s, and so for all that is inside it", (name, who) => {
    expect([changeableBy(name), changeableBy(`${name}.x.y`)]).toEqual([who, who]);
  });

  test("what is no setting, nobody", () => {
    for (const key of ["", "HTTP", " http", "__proto__", "constructor.name", "toString"])
      expect(changeableBy(key), key).toBe("nobody");
  });
});
