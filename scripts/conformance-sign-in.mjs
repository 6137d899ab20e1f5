// Credentials for the conformance suite, which sends none itself.
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { promisify } from "node:util";
import { exportJWK, generateKeyPair, SignJWT } from "jose";

const executable = path.resolve(import.meta.dirname, "../bin/meanwhile.cjs");
const audience = "https://conformance.example/mcp";

/** Each is called before the server starts. `get` returns a credential once the server runs. */
export const signIns = {
  async key({ cwd, env }) {
    const words = [executable, "keys", "add", "conformance", "--json"];
    const get = async () => {
      const { stdout } = await promisify(execFile)(process.execPath, words, { cwd, env });
      return JSON.parse(stdout).key;
    };
    return { get, close() {} };
  },
  async token({ env }) {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const keys = [{ ...(await exportJWK(publicKey)), kid: "one", alg: "ES256", use: "sig" }];
    const server = http.createServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ keys }));
    });
    const issuer = await listen(server);
    const config = { auth: { issuers: [{ issuer, audience, jwksUri: `${issuer}/keys` }] } };
    mkdirSync(env.MEANWHILE_HOME, { recursive: true, mode: 0o700 });
    writeFileSync(path.join(env.MEANWHILE_HOME, "config.json"), JSON.stringify(config), { mode: 0o600 });
    const claims = { sub: "suite", client_id: "conformance", scope: "meanwhile:read meanwhile:call" };
    const get = () =>
      new SignJWT({ ...claims, iss: issuer, aud: audience })
        .setProtectedHeader({ alg: "ES256", kid: "one", typ: "at+jwt" })
        .setExpirationTime("1h")
        .sign(privateKey);
    return { get, close: () => server.close() };
  },
};

/** Starts a proxy on loopback that adds the credential to each request, and changes nothing else. */
export async function addingCredential(url, credential) {
  const { hostname, port, pathname } = new URL(url);
  const agent = new http.Agent({ keepAlive: true });
  const server = http.createServer((request, response) => {
    const headers = [...request.rawHeaders, "Authorization", `Bearer ${credential}`];
    const to = { hostname, port, path: request.url, method: request.method, headers, agent, setHost: false };
    const sent = http.request(to, (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders).flushHeaders();
      answer.on("error", () => response.destroy()).pipe(response);
    });
    sent.on("error", () => response.destroy());
    response.on("close", () => sent.destroy());
    request.pipe(sent);
  });
  const origin = await listen(server);
  const close = () => {
    server.close();
    server.closeAllConnections();
    agent.destroy();
  };
  return { url: `${origin}${pathname}`, close };
}

async function listen(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}
