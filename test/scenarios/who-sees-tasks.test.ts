import path from "node:path";
import { systemClock } from "../../src/clock.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { startTokenIssuer } from "../helpers/token-issuer.ts";
import { testWhoSeesTasks } from "../helpers/who-sees-tasks.ts";

testWhoSeesTasks({
  openStore: async () => path.join(temporaryFolder(), "tasks.db"),
  startIssuer: () => startTokenIssuer(systemClock),
});
