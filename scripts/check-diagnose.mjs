// Every check against every broken server: each must trip its own check, what follows from it (`also`), and no other.
// `npm run check:diagnose [-- name …]`
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { runDiagnosis } from "../src/diagnose/run-diagnosis.ts";
import { checks } from "../src/diagnose/suites/index.ts";
import { allBreaks, foreignToken, startFixture } from "../test/fixtures/diagnose/server.mjs";

const fixture = path.resolve(import.meta.dirname, "../test/fixtures/diagnose/server.mjs");
const wanted = process.argv.slice(2);
const names = Object.keys(allBreaks).filter(
  (name) => wanted.length === 0 || wanted.some((word) => name.startsWith(word)),
);
const tokens = ["first-caller-token", "second-caller-token"];
const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-diagnose-"));

const checkOf = (name) => checks.find(({ id }) => id === name.split("~")[0]);

/** Where a break can be seen: the transport of its check, or whichever it says. */
function transportOf(name) {
  return (
    allBreaks[name].transport ?? checkOf(name)?.transport ?? (allBreaks[name].start === undefined ? "http" : "stdio")
  );
}

async function findingsOf(name) {
  const { tools, isFull = checkOf(name)?.isThorough === true, isOpen } = allBreaks[name];
  const options = { tools, isFull, isDeterministic: true, budgetMs: 280_000, version: "0" };
  if (transportOf(name) === "stdio") {
    const argv = [process.execPath, fixture, "--state", path.join(folder, encodeURIComponent(name)), "--break", name];
    return await runDiagnosis({ ...options, target: { kind: "stdio", argv } });
  }
  const { url, close } = await startFixture({ breaks: [name], tokens: isOpen === true ? [] : tokens });
  try {
    const [headers, otherHeaders, foreignHeaders] = [...tokens, foreignToken].map((token) => ({
      authorization: `Bearer ${token}`,
    }));
    return await runDiagnosis({
      ...options,
      target: {
        kind: "http",
        url,
        headers,
        otherHeaders,
        foreignHeaders,
        policy: { allowsPrivate: false, allowsLoopback: true },
      },
    });
  } finally {
    await close();
  }
}

let failures = 0;
const queue = [...names];
async function work() {
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    const { findings, checks: results } = await findingsOf(name);
    const own = name.split("~")[0];
    const found = [...new Set(findings.map(({ check }) => check))];
    const unfinished = results.filter(({ outcome }) => outcome === "unfinished").map(({ id }) => id);
    const expected = [own, ...(allBreaks[name].also ?? [])];
    const missing = expected.filter((id) => !found.includes(id));
    const others = found.filter((id) => !expected.includes(id));
    const isExact = missing.length === 0 && others.length === 0;
    if (!isExact) failures++;
    const list = (title, ids) => (ids.length === 0 ? "" : `  ${title} ${ids.join(", ")}`);
    console.log(
      `${isExact ? "✓" : "✗"} ${name}${list("not found:", missing)}${list("also found:", others)}${list("unfinished:", unfinished)}`,
    );
  }
}
await Promise.all(Array.from({ length: 2 * availableParallelism() }, work));
rmSync(folder, { recursive: true, force: true });
console.log(`${names.length - failures} of ${names.length} broken servers are told apart exactly`);
process.exitCode = failures === 0 ? 0 : 1;
