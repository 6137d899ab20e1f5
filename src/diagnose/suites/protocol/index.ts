import type { Check } from "../../check.ts";
import { check as answers } from "./answers.ts";
import { check as badMessage } from "./bad-message.ts";
import { check as cancellation } from "./cancellation.ts";
import { check as contentType } from "./content-type.ts";
import { check as discover } from "./discover.ts";
import { check as earlyRequest } from "./early-request.ts";
import { check as envelope } from "./envelope.ts";
import { check as httpMethods } from "./http-methods.ts";
import { check as ids } from "./ids.ts";
import { check as initialize } from "./initialize.ts";
import { check as lists } from "./lists.ts";
import { check as notifications } from "./notifications.ts";
import { check as ping } from "./ping.ts";
import { check as requestMetadata } from "./request-metadata.ts";
import { check as resultFields } from "./result-fields.ts";
import { check as routingHeaders } from "./routing-headers.ts";
import { check as sessions } from "./sessions.ts";
import { check as shutdown } from "./shutdown.ts";
import { check as stableTools } from "./stable-tools.ts";
import { check as stdout } from "./stdout.ts";
import { check as toolDefinitions } from "./tool-definitions.ts";
import { check as toolResults } from "./tool-results.ts";
import { check as unknownMethod } from "./unknown-method.ts";
import { check as unknownTool } from "./unknown-tool.ts";
import { check as unsupportedVersion } from "./unsupported-version.ts";
import { check as versionHeader } from "./version-header.ts";
import { check as versionNegotiation } from "./version-negotiation.ts";

export const protocol: readonly Check[] = [
  answers,
  // How a conversation begins.
  initialize,
  versionNegotiation,
  earlyRequest,
  discover,
  unsupportedVersion,
  requestMetadata,
  resultFields,
  // How messages look, and what is no request.
  envelope,
  ids,
  stdout,
  contentType,
  unknownMethod,
  unknownTool,
  badMessage,
  notifications,
  ping,
  // What is offered, and what calls give.
  lists,
  stableTools,
  toolDefinitions,
  toolResults,
  cancellation,
  // Sessions and their end.
  versionHeader,
  routingHeaders,
  sessions,
  httpMethods,
  shutdown,
];
