import { spawn } from "node:child_process";
import path from "node:path";
import { cleanUp } from "./home.ts";
import { waitFor } from "./meanwhile.ts";

const app = path.resolve(import.meta.dirname, "../fixtures/embed/suite-app.ts");

/** How a client starts it over stdio. */
export const suiteProcess = (server: "v1" | "v2" | "everything") => ({
  process: { command: process.execPath, args: [app, server, "stdio"], stderr: "ignore" as const },
});

/** Starts it over HTTP, for the test. */
export async function serveSuite(
  server: "v1" | "v2" | "everything",
  how: "plain" | "one" | "factory",
): Promise<{ readonly url: string }> {
  const child = spawn(process.execPath, [app, server, how], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const ended = new Promise((resolve) => child.once("close", resolve));
  cleanUp(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const url = await waitFor(
    () => /http:\S+/.exec(said)?.[0],
    () => said,
  );
  return { url };
}
