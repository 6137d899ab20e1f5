import type { HttpAnswer } from "../../wire/probe-http.ts";
import type { Probe } from "../probe.ts";
import { foreignOrigin } from "./door.ts";

/** Asks as a browser does before it lets a foreign page send JSON; browsers send no credentials with it. */
export function preflight(probe: Probe): Promise<HttpAnswer> {
  const headers = {
    origin: foreignOrigin,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,mcp-protocol-version",
  };
  return probe.http({ method: "OPTIONS", isBare: true, headers });
}
