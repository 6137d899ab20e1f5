import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect } from "vitest";
import { cleanUp, temporaryFolder } from "./home.ts";
import { waitFor } from "./meanwhile.ts";
import type { Fields } from "./wire.ts";

/**
 * The SDK's own example servers, unchanged but for one line. They serve when they are loaded, so each is copied for the
 * test, to a place from where it finds what it imports.
 */

const root = path.resolve(import.meta.dirname, "../..");
const sdk = path.join(root, "node_modules/@modelcontextprotocol/sdk/dist/esm");
const library = pathToFileURL(path.join(root, "dist/index.js")).href;
/** Says where an app listens that does not say so itself. */
const tellPort = `data:text/javascript,${encodeURIComponent(
  `import { Server } from "node:net";
   const { listen } = Server.prototype;
   Server.prototype.listen = function (...words) {
     this.once("listening", () => process.stderr.write("listening on " + this.address().port + "\\n"));
     return listen.apply(this, words);
   };`,
)}`;

/** The file of an example in which one line reads otherwise. */
export function copyExample(name: string, line: string, instead: string): string {
  const folder = temporaryFolder();
  const place = path.join(folder, "examples", "server");
  mkdirSync(place, { recursive: true });
  for (const entry of readdirSync(sdk).filter((entry) => entry !== "examples"))
    symlinkSync(path.join(sdk, entry), path.join(folder, entry));
  for (const entry of readdirSync(path.join(sdk, "examples/server")).filter((entry) => entry !== `${name}.js`))
    symlinkSync(path.join(sdk, "examples/server", entry), path.join(place, entry));
  symlinkSync(path.join(sdk, "examples/shared"), path.join(folder, "examples", "shared"));
  symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"));
  const text = readFileSync(path.join(sdk, "examples/server", `${name}.js`), "utf8");
  if (text.split(line).length !== 2) throw new Error(`${name} has not one line «${line}»`);
  const file = path.join(place, `${name}.js`);
  // On one line with what stands there, so that no other line is another one.
  const hashbang = /^#!.*\n/.exec(text)?.[0] ?? "";
  const body = text.slice(hashbang.length).replace(line, () => instead);
  writeFileSync(path.join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(file, `${hashbang}import { durable } from ${JSON.stringify(library)};${body}`);
  return file;
}

/** Starts a copy that serves over HTTP, on a port that is free. */
export async function serveExample(file: string): Promise<string> {
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, ["--import", tellPort, file], {
    env: { PATH: process.env.PATH, PORT: "0", MCP_PORT: "0" },
  });
  let said = "";
  child.stdout.resume();
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const ended = new Promise((resolve) => child.once("close", resolve));
  cleanUp(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const port = await waitFor(
    () => /listening on (\d+)/.exec(said)?.[1],
    () => said,
  );
  return `http://127.0.0.1:${port}/mcp`;
}

/** Matches a result with one text. */
export const textResult = (words: string | RegExp) => ({
  content: [{ type: "text", text: typeof words === "string" ? words : expect.stringMatching(words) }],
});

/** Capabilities of a client that fills in forms. */
export const formCapabilities = { elicitation: { form: {} } };

/** The line of an example over HTTP that `durable` replaces. */
export const postLine = "app.post('/mcp', mcpPostHandler);";

/** Answers every form with values that fit, and records the messages of the forms. */
export function fillForms() {
  const asked: string[] = [];
  const answer = (_method: string, { message }: Fields) => {
    asked.push(message);
    const content = { username: "ada", name: "Ada", email: "ada@example.com", password: "correct horse" };
    return { action: "accept", content };
  };
  return { asked, answer };
}
