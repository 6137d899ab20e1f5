import type { Check } from "../../check.ts";
import { check as cancel } from "./cancel.ts";
import { check as capability } from "./capability.ts";
import { check as create } from "./create.ts";
import { check as failing } from "./failing.ts";
import { check as id } from "./id.ts";
import { check as lifecycle } from "./lifecycle.ts";
import { check as list } from "./list.ts";
import { check as listen } from "./listen.ts";
import { check as pollInterval } from "./poll-interval.ts";
import { check as required } from "./required.ts";
import { check as restart } from "./restart.ts";
import { check as result } from "./result.ts";
import { check as toolSupport } from "./tool-support.ts";
import { check as ttl } from "./ttl.ts";
import { check as uninvited } from "./uninvited.ts";
import { check as unknownId } from "./unknown-id.ts";

/** From what is declared to what becomes of a task. */
export const tasks: readonly Check[] = [
  capability,
  toolSupport,
  required,
  create,
  id,
  pollInterval,
  lifecycle,
  result,
  failing,
  cancel,
  unknownId,
  uninvited,
  list,
  listen,
  ttl,
  restart,
];
