import type { Check } from "../../check.ts";
import { check as afterCancel } from "./after-cancel.ts";
import { check as afterEnd } from "./after-end.ts";
import { check as increasing } from "./increasing.ts";
import { check as parallel } from "./parallel.ts";
import { check as rate } from "./rate.ts";
import { check as shape } from "./shape.ts";
import { check as silence } from "./silence.ts";
import { check as token } from "./token.ts";
import { check as uninvited } from "./uninvited.ts";

/** Whose it is, what it says, how often it comes, and when it stops. */
export const progress: readonly Check[] = [
  token,
  uninvited,
  shape,
  increasing,
  rate,
  silence,
  afterEnd,
  afterCancel,
  parallel,
];
