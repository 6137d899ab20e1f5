import type { Check } from "../check.ts";
import { completion } from "./completion/index.ts";
import { hosts } from "./hosts/index.ts";
import { performance } from "./performance/index.ts";
import { progress } from "./progress/index.ts";
import { protocol } from "./protocol/index.ts";
import { security } from "./security/index.ts";
import { tasks } from "./tasks/index.ts";

/** Every check, in the order in which they are asked. */
export const checks: readonly Check[] = [
  ...protocol,
  ...tasks,
  ...progress,
  ...completion,
  ...security,
  ...performance,
  ...hosts,
];
