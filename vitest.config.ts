import path from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { type Rounds, shortRounds } from "./test/rounds.ts";

// Every process of a test shares one cache of compiled code: with an empty cache each would compile everything.
process.env.NODE_COMPILE_CACHE ??= path.resolve(import.meta.dirname, "node_modules/.cache/compiled");

// The type checker starts many times. With a larger heap it does half the work.
process.env.GOGC ??= "400";

/** Files that mostly wait start first. Started last, they would make the run longer. */
const slow = ["ninety-seconds", "chaos/", "conformance/", "diagnose/golden", "package/", "test/long/"];

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => slow.findIndex((name) => moduleId.includes(name));
    const sorted = await super.sort(files);
    return [
      ...sorted.filter((file) => rank(file) !== -1).toSorted((a, b) => rank(a) - rank(b)),
      ...sorted.filter((file) => rank(file) === -1),
    ];
  }
}

/** A tier is a folder. `npm test` runs the in-process tier, `CI=true npm test` all of them but `long`. */
const folders = ["system", "chaos", "package", "long"];
const tiers: { name: string; include: string[]; exclude?: string[]; setupFiles?: string[] }[] = [
  {
    name: "in-process",
    include: ["test/**/*.test.ts"],
    exclude: folders.map((folder) => `test/${folder}/**`),
    setupFiles: ["test/helpers/no-processes.ts"],
  },
  ...folders.map((name) => ({ name, include: [`test/${name}/**/*.test.ts`] })),
];

/** Every tier, with these rounds. */
export const createConfig = (rounds: Rounds) =>
  defineConfig({
    test: {
      provide: { rounds },
      sequence: { sequencer: SlowFirst },
      projects: tiers.map(({ exclude = [], ...tier }) => ({
        extends: true,
        test: { ...tier, exclude: [...exclude, "**/node_modules/**"] },
      })),
      // A worker runs one file after the other and keeps the modules that it has loaded: a test closes what it opens.
      isolate: false,
      // These only guard against hanging: on a busy machine a test of forty starts takes minutes.
      testTimeout: 300_000,
      hookTimeout: 300_000,
      experimental: { viteModuleRunner: false },
    },
  });

export default createConfig(shortRounds);
