import type { Check } from "../../check.ts";
import { check as chosenSession } from "./chosen-session.ts";
import { check as errorLeak } from "./error-leak.ts";
import { check as foreignAudience } from "./foreign-audience.ts";
import { check as foreignOrigin } from "./foreign-origin.ts";
import { check as foreignTask } from "./foreign-task.ts";
import { check as guessableSession } from "./guessable-session.ts";
import { check as hiddenText } from "./hidden-text.ts";
import { check as instructingText } from "./instructing-text.ts";
import { check as noCredentials } from "./no-credentials.ts";
import { check as openAddress } from "./open-address.ts";
import { check as openCors } from "./open-cors.ts";
import { check as openPath } from "./open-path.ts";
import { check as plainHttp } from "./plain-http.ts";
import { check as rebinding } from "./rebinding.ts";
import { check as secretInText } from "./secret-in-text.ts";
import { check as signInHint } from "./sign-in-hint.ts";
import { check as stolenSession } from "./stolen-session.ts";
import { check as tokenInUrl } from "./token-in-url.ts";
import { check as unmarkedDanger } from "./unmarked-danger.ts";
import { check as wrongCredentials } from "./wrong-credentials.ts";

export const security: readonly Check[] = [
  noCredentials,
  wrongCredentials,
  foreignAudience,
  signInHint,
  plainHttp,
  tokenInUrl,
  rebinding,
  foreignOrigin,
  openCors,
  chosenSession,
  stolenSession,
  guessableSession,
  foreignTask,
  errorLeak,
  hiddenText,
  instructingText,
  secretInText,
  openAddress,
  openPath,
  unmarkedDanger,
];
