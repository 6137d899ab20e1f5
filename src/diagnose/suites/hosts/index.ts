import type { Check } from "../../check.ts";
import { check as slowCall } from "./slow-call.ts";

export const hosts: readonly Check[] = [slowCall];
