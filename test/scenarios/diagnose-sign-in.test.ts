import http from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import type { Report } from "../../src/diagnose/report/report.ts";
import { runCli, startHttpHere } from "../helpers/cli.ts";
// Runs the checks in this process.
import "../helpers/diagnose.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startTokenIssuer } from "../helpers/token-issuer.ts";

/** What `diagnose` finds about sign-in: nothing in a server of ours, and what is wrong in copies with one fault each. */

const hello = `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Greets a user by name",
  effects: "read",
  input: z.object({ name: z.string().max(100).describe("Who is greeted") }),
  run: ({ name }) => ({ text: "Hello " + name }),
});`;
const otherServer = "https://other.example.com/mcp";

interface Fault {
  /** Audiences that the server accepts in place of its own URL. */
  readonly audience?: readonly string[];
  /** Changes the server's answer. */
  readonly change?: (answer: Answer, path: string) => void;
}

interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
}

/** A server of ours with an issuer, behind a proxy that may change its answers. */
async function diagnoseCopy({ audience, change }: Fault = {}) {
  let port = 0;
  const proxy = http.createServer((request, response) => {
    const { url: path = "/", method, headers } = request;
    const sent = http.request({ host: "127.0.0.1", port, path, method, headers, agent: false }, (answer) => {
      const changed = { status: answer.statusCode ?? 0, headers: answer.headers };
      change?.(changed, path);
      response.writeHead(changed.status, changed.headers).flushHeaders();
      answer.pipe(response);
    });
    sent.on("error", () => response.destroy());
    response.on("close", () => sent.destroy());
    request.pipe(sent);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  cleanUp(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`;
  const issuer = await startTokenIssuer(systemClock);
  const config = { auth: { issuers: [{ issuer: issuer.issuer, ...(audience && { audience: [url, ...audience] }) }] } };
  const files = { "commands/hello.ts": hello, "meanwhile.config.json": JSON.stringify(config) };
  const server = await startHttpHere(["--public-url", url], { cwd: writeFiles(temporaryFolder(), files) });
  port = Number(new URL(server.url).port);
  const [own, other, foreign] = await Promise.all([
    issuer.token({ aud: url }),
    issuer.token({ aud: url, sub: "grace" }),
    issuer.token({ aud: otherServer }),
  ]);
  const words = ["--token-env", "OWN", "--other-header", `Authorization: Bearer ${other}`];
  const more = ["--foreign-header", `Authorization: Bearer ${foreign}`, "--format", "json"];
  const { stdout, stderr } = await runCli(["diagnose", url, ...words, ...more], { env: { OWN: own } });
  if (stdout === "") throw new Error(stderr);
  for (const token of [own, other, foreign]) expect(stdout).not.toContain(token);
  const { checks, findings } = JSON.parse(stdout) as Report;
  return {
    findings: findings.map(({ check, title }) => `${check}: ${title}`),
    passed: checks.filter(({ outcome }) => outcome === "passed").map(({ id }) => id),
  };
}

test("a server of ours: no finding", async () => {
  const { findings, passed } = await diagnoseCopy();
  expect(findings).toEqual([]);
  const asked = ["no-credentials", "wrong-credentials", "foreign-audience", "sign-in-hint", "token-in-url"];
  expect(passed).toEqual(expect.arrayContaining(asked.map((name) => `security/${name}`)));
});

test.each<[string, Fault, string]>([
  [
    "accepts tokens for another audience",
    { audience: [otherServer] },
    "security/foreign-audience: The server accepts a token that was issued for another server",
  ],
  [
    "has no metadata",
    {
      change(answer, path) {
        if (path.startsWith("/.well-known/")) answer.status = 404;
      },
    },
    "security/sign-in-hint: The sign-in metadata that the refusal names cannot be read",
  ],
  [
    "sends no challenge",
    {
      change(answer) {
        delete answer.headers["www-authenticate"];
      },
    },
    "security/sign-in-hint: The refusal names no way to sign in: WWW-Authenticate is missing",
  ],
])("a copy that %s: exactly that is found", async (_title, fault, finding) => {
  expect((await diagnoseCopy(fault)).findings).toEqual([finding]);
});
