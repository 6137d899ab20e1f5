// Writes the list of checks into docs/diagnose.md: `node scripts/diagnose-docs.mjs`. A test fails when the page is
// behind.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { severities, suiteNames } from "../src/diagnose/check.ts";
import { checks } from "../src/diagnose/suites/index.ts";

const page = path.resolve(import.meta.dirname, "../docs/diagnose.md");
const suites = path.resolve(import.meta.dirname, "../src/diagnose/suites");
const begin = "<!-- checks: written by scripts/diagnose-docs.mjs -->";

/** The page with every check as it is now. */
export function withChecks(text) {
  const start = text.indexOf(begin);
  if (start === -1) throw new Error(`docs/diagnose.md lacks ${begin}`);
  return `${text.slice(0, start)}${begin}\n\n${suiteNames.map(suiteSection).join("\n")}`;
}

function suiteSection(suite) {
  const own = checks.filter(({ id }) => id.startsWith(`${suite}/`));
  return `### ${suite}\n\n${own.map(checkSection).join("\n")}`;
}

function checkSection({ id, question, severity, why, remedy, source, transport, isThorough }) {
  const facts = [
    severitiesOf(id, severity),
    ...(transport === undefined ? [] : [`${transport} only`]),
    ...(isThorough === true ? ["with `--full`"] : []),
  ];
  return `- **${inert(question)}** \`${id}\` (${facts.join(", ")})\\\n  ${inert(why)}\\\n  _What to change:_ ${inert(remedy)} _Source:_ ${inert(source)}.\n`.replaceAll(
    "..\n",
    ".\n",
  );
}

/**
 * What its findings may weigh, worst first: `major or minor`. A check's code, and what its suite asks with, name them
 * all.
 */
function severitiesOf(id, severity) {
  const own = readFileSync(path.join(suites, `${id}.ts`), "utf8");
  const shared = new RegExp(` from "(../../asking/${path.dirname(id)}/[a-z0-9-]+\\.ts)"`, "g");
  const texts = [...own.matchAll(shared)].map(([, file]) =>
    readFileSync(path.resolve(suites, path.dirname(id), file), "utf8"),
  );
  const found = severities.filter(
    (one) => one === severity || [own, ...texts].some((text) => text.includes(`"${one}"`)),
  );
  return found.join(", ").replace(/, (?=[a-z]+$)/, " or ");
}

/** Signs that Markdown would take for its own. */
function inert(text) {
  return text.replaceAll(/[<>[\]*]/g, String.raw`\$&`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  writeFileSync(page, withChecks(readFileSync(page, "utf8")));
