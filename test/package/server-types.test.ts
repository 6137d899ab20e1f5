import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { app } from "../helpers/server-app.ts";
import { complaintsOf, resolutions } from "../helpers/strict-types.ts";

const root = path.resolve(import.meta.dirname, "../..");

test.for(resolutions)(
  "An app with a server inside, and every example, has its types without a cast: %s",
  async ([module, moduleResolution]) => {
    // The types of other packages are checked in test/long, our own in tarball.test.ts, the examples once.
    const folders = module === "nodenext" ? ["examples"] : [];
    const options = { folders, module, moduleResolution, isThorough: false };
    expect(await complaintsOf({ "app.ts": app }, options)).toEqual([]);
  },
);

test("No example of a server inside a program casts", () => {
  const files = globSync("examples/{embed-*,published-cli}/**/*.{ts,js,mjs}", { cwd: root });
  expect(files.length).toBeGreaterThan(12);
  for (const file of files) {
    const lines = readFileSync(path.join(root, file), "utf8").split("\n");
    const code = lines.filter((line) => !/^ *(\/\/|\*|\/\*\*|import )/.test(line));
    expect(
      code.filter((line) => /\bas (?!const\b)|\bany\b|@ts-/.test(line)),
      file,
    ).toEqual([]);
  }
});

test("The types of what is published name no part of how somebody else's tool is called", () => {
  const names = /export \{([^}]*)\};/.exec(readFileSync(path.join(root, "dist/index.d.ts"), "utf8"))?.[1] ?? "";
  expect(names).toContain("durable");
  expect(names).not.toMatch(/\b(ForeignTool|ForeignRequest|Relay|JsonObject|Guest\w*|CheckedOptions|OpenParts)\b/);
});
