import { createConfig } from "../../vitest.config.ts";
import { longRounds } from "../rounds.ts";

/** The configuration of `npm run check:long`. */
export default createConfig(longRounds);
