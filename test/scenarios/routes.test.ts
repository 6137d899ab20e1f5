import { globSync, readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { describeResource } from "../../src/auth/metadata.ts";
import { systemClock } from "../../src/clock.ts";
import { startHttpHere } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openMounted, serve, toCall, toRequest } from "../helpers/mounted.ts";
import { startTokenIssuer } from "../helpers/token-issuer.ts";

/** What a request without a credential gets from every route of every HTTP server. */

const src = path.resolve(import.meta.dirname, "../../src");
const textOf = (file: string) => readFileSync(path.join(src, file), "utf8");

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] as const;
type Method = (typeof methods)[number];
type Statuses = Readonly<Partial<Record<Method, number>>> & { readonly others: number };

const everyMethod = (status: number): Statuses => ({ others: status });
const health = everyMethod(200);
const metadata: Statuses = { GET: 200, HEAD: 200, OPTIONS: 204, others: 405 };
const noMetadata = everyMethod(404);
/** Routes that answer without a credential. Every other route must answer 401. */
const open: Readonly<Record<string, Statuses>> = { "/healthz": health, "/healthz?x=1": health };

/** The paths that the code of HTTP servers names, and spellings that a careless comparison would take for one of them. */
function pathsInCode(): string[] {
  const files = [...globSync("{transport,auth,embed,mcp}/**/*.ts", { cwd: src }), "serve.ts"];
  const found = files.flatMap((file) => [...textOf(file).matchAll(/["'`](\/[\w.-][\w./-]*)["'`$]/g)]);
  return [...new Set(found.map(([, text = ""]) => text))];
}

const metadataPaths = describeResource({ publicUrl: "http://127.0.0.1/mcp", issuers: [], name: "" }).metadataPaths;
const spellings = (name: string) => [
  ...[name, `${name}/`, `${name}/x`, `/${name}`, `${name}?x=1`, `${name}%00`, name.toUpperCase()],
  ...[`/x/..${name}`, `/%${name.charCodeAt(1).toString(16)}${name.slice(2)}`, `${name};x=1`, `/mcp${name}`],
];
const common = ["/", "/metrics", "/readyz", "/tasks", "/tools", "/stats", "/keys", "/favicon.ico", "/sse", "/message"];
const paths = [...new Set([...pathsInCode(), ...metadataPaths, ...common].flatMap(spellings))];

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly challenge: string | undefined;
}

/** Unlike `fetch`, sends the path as it is given. */
function send(origin: string, method: string, name: string): Promise<Answer> {
  const { hostname, port } = new URL(origin);
  const body = method === "POST" || method === "PUT" || method === "PATCH" ? String(toCall("add", {}).init.body) : "";
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, path: name, method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => (text += part));
      const challenge = response.headers["www-authenticate"];
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text, challenge }));
    });
    request.on("error", reject).end(body);
  });
}

/** Every route and method whose status is not the expected one. */
async function scan(origin: string, expected: (name: string) => Statuses): Promise<string[]> {
  const wrong: string[] = [];
  for (const name of paths)
    for (const method of methods) {
      const statuses = expected(name);
      const wanted = statuses[method] ?? statuses.others;
      const { status, text, challenge } = await send(origin, method, name);
      if (status !== wanted || /add|project/.test(text)) wrong.push(`${method} ${name}: ${status} ${text}`);
      if (status === 401 && challenge?.startsWith("Bearer") !== true) wrong.push(`${method} ${name}: no challenge`);
    }
  return wrong;
}

const start = async (config: object) => {
  const files = { "meanwhile.config.json": JSON.stringify(config) };
  const { url } = await startHttpHere([], { cwd: writeFiles(temporaryFolder(), files) });
  return new URL(url).origin;
};
const withKeys = shareAmongTests(() => start({}));
const withIssuer = shareAmongTests(async () => {
  const { issuer } = await startTokenIssuer(systemClock);
  return await start({ auth: { issuers: [{ issuer }] } });
});

const pathOf = (name: string) => name.split("?", 1)[0] as string;
const isWellKnown = (name: string) => name.startsWith("/.well-known/oauth-protected-resource");

describe("without a credential", () => {
  test("the scan finds the routes in the code", () => {
    expect(paths).toEqual(expect.arrayContaining(["/mcp", "/healthz", ...metadataPaths]));
    expect(paths.length).toBeGreaterThan(100);
  });

  test("a server without an issuer answers 401 but for its health, and has no metadata", async () => {
    const expected = (name: string) => open[name] ?? (isWellKnown(name) ? noMetadata : everyMethod(401));
    expect(await scan(await withKeys(), expected)).toEqual([]);
  });

  test("a server with an issuer answers 401 but for its health and its metadata", async () => {
    const expected = (name: string) => {
      if (metadataPaths.includes(pathOf(name))) return metadata;
      return open[name] ?? (isWellKnown(name) ? noMetadata : everyMethod(401));
    };
    expect(await scan(await withIssuer(), expected)).toEqual([]);
  });

  test("a mount whose app does not know the caller answers 401, whatever the path", async () => {
    const { mount } = await openMounted({ identify: () => undefined });
    const { url } = await serve(mount.node);
    expect(await scan(new URL(url).origin, () => everyMethod(401))).toEqual([]);
    for (const name of paths.filter((one) => URL.canParse(`http://localhost${one}`)))
      for (const method of methods.filter((one) => one !== "TRACE")) {
        const response = await mount.fetch(toRequest(`http://localhost${name}`, { method }));
        expect([method, name, response.status]).toEqual([method, name, 401]);
      }
  });
});

test("HTTP servers listen in these files alone", () => {
  const listening = globSync("**/*.ts", { cwd: src }).filter((file) =>
    /import (?:http\b|\{[^}]*\bcreateServer\b[^}]*\}) *from "node:(?:http|https|http2)"/.test(
      textOf(file).replaceAll(/\s+/g, " "),
    ),
  );
  const servers = listening.filter((file) => /\bcreateServer\(/.test(textOf(file)));
  // The other one waits for the browser of a user who signs in at an upstream.
  expect(servers.map((file) => file.replaceAll("\\", "/")).sort()).toEqual([
    "gateway/oauth/browser-grant.ts",
    "transport/http/http-door.ts",
  ]);
});
