import { createConfig } from "../../vitest.config.ts";
import { longRounds } from "../rounds.ts";

const { FUZZ_SEED, FUZZ_FRAMES } = process.env;

/** The configuration of `npm run check:fuzz`, which sets the two variables. */
export default createConfig({ ...longRounds, fuzzSeed: Number(FUZZ_SEED), fuzzFrames: Number(FUZZ_FRAMES) });
