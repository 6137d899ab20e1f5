// node bench/auth.mjs [--quick] [--markdown]: what checking the caller's credential costs a tools/call over HTTP, beside
// the same server without a check. A missed goal is reported; only what breaks or answers wrongly fails.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { openHttp } from "./client.mjs";
import { makePlainProject } from "./projects.mjs";
import { printTable, Results, toTable } from "./report.mjs";
import { createMeanwhile } from "./servers.mjs";
import { Turns } from "./turns.mjs";

const program = fileURLToPath(new URL("../bin/meanwhile.cjs", import.meta.url));
/** As many as an anonymous caller has begun in one turn of the event loop, so that no request waits for a turn. */
const width = 8;
const sizes = { quick: { rounds: 1, turns: 10 }, full: { rounds: 5, turns: 20 } };
/** How many calls a slice makes. */
const calls = { warmUp: 3_000, leadIn: 10, one: 100, many: 320 };
const revisions = ["2026-07-28", "2025-11-25"];
const audience = "https://bench.example/mcp";

const noCheck = (bound) => ({ of: "no check", ...bound });
/** Each credential with its goal; the server without a check stands beside them. */
const credentials = {
  "home's token": noCheck(),
  "API key": noCheck(),
  "token seen before": noCheck({ most: 1.1 }),
  "new token": noCheck(),
};
/** What is measured of each, by the end of its id. */
const ways = { "cpu-1": "one at a time", cpu: `${width} in flight` };
const rows = revisions.flatMap((revision) =>
  Object.entries(ways).flatMap(([way, title]) =>
    Object.entries(credentials).map(([name, goal]) => ({
      id: `${revision}-${way} ${name}`,
      measured: `${revision}-${way}`,
      name,
      title: `HTTP ${revision}, CPU a call, ${title}, ${name}`,
      unit: "µs",
      goals: [goal],
    })),
  ),
);
const columns = ["no check", "with it"];

/** An authorization server on this machine: its keys at `/keys`, and the tokens that it signs. */
async function startIssuer() {
  const { publicKey, privateKey } = await generateKeyPair("RS256");
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "bench", alg: "RS256", use: "sig" }] });
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(keys);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const sign = async (jti) =>
    await new SignJWT({ client_id: "bench", scope: "meanwhile:read meanwhile:call", jti })
      .setProtectedHeader({ alg: "RS256", kid: "bench", typ: "at+jwt" })
      .setIssuer(issuer)
      .setSubject("ada")
      .setAudience(audience)
      .setExpirationTime("6h")
      .sign(privateKey);
  return { settings: { issuer, audience, jwksUri: `${issuer}/keys` }, sign, close: () => server.close() };
}

/** Each gives a function for every client, which returns the Authorization header of a request. */
async function createHeaders({ folder, env, issuer, count }) {
  const run = (...words) =>
    execFileSync(process.execPath, [program, "-C", folder, ...words], { env, encoding: "utf8" });
  const { key } = JSON.parse(run("keys", "add", "bench", "--json"));
  const homeToken = run("token").trim();
  const seen = await issuer.sign("seen");
  const fresh = [];
  for (let at = 0; at < count; at++) fresh.push(`Bearer ${await issuer.sign(String(at))}`);
  const always = (token) => () => () => `Bearer ${token}`;
  return {
    "home's token": always(homeToken),
    "API key": always(key),
    "token seen before": always(seen),
    // A server is started anew for each client, so that it has seen none of them.
    "new token"() {
      let next = 0;
      return () => {
        const header = fresh[next++];
        if (header === undefined) throw new Error("There are too few tokens.");
        return header;
      };
    },
  };
}

async function main() {
  const { values: options } = parseArgs({ options: { quick: { type: "boolean" }, markdown: { type: "boolean" } } });
  const size = options.quick ? sizes.quick : sizes.full;
  const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-auth-"));
  process.on("exit", () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));
  const env = { PATH: process.env.PATH, HOME: scratch, MEANWHILE_HOME: path.join(scratch, "home") };
  const issuer = await startIssuer();
  const folder = makePlainProject(path.join(scratch, "project"), 10);
  // A flag would make another project of it, and a key belongs to one project.
  const config = { bundled: false, auth: { issuers: [issuer.settings] } };
  writeFileSync(path.join(folder, "meanwhile.config.json"), JSON.stringify(config));
  // The handshake of a session takes two requests.
  const count = calls.warmUp + size.turns * (3 * (calls.leadIn + calls.one) + calls.many) + 2;
  const headers = await createHeaders({ folder, env, issuer, count });
  const server = createMeanwhile({ project: folder });
  const list = revisions.map((revision) =>
    ["no check", ...Object.keys(headers)].map((name) => ({
      id: revision,
      name,
      open: () => openHttp(server, env, { revision, authorize: headers[name]?.() }),
    })),
  );
  const measured = new Results();
  const turns = new Turns(measured, size);
  const startedAt = performance.now();
  for (let round = 1; round <= size.rounds; round++)
    for (const [at, each] of list.entries()) {
      process.stderr.write(`auth, round ${round} of ${size.rounds}: ${revisions[at]}\n`);
      await turns.compareCalls(each, { counts: calls, width });
    }
  issuer.close();
  printTable(toTable({ columns, rows }, byRow(measured)), { ...options, rounds: size.rounds, startedAt });
}

/** The same figures: a row for each credential, beside those without a check. */
function byRow(measured) {
  const results = new Results();
  for (const { id, measured: from, name } of rows) {
    for (const value of measured.values(from, "no check")) results.add(id, "no check", value);
    for (const value of measured.values(from, name)) results.add(id, "with it", value);
  }
  return results;
}

await main();
