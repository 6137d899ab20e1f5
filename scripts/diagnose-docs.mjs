// Writes the list of checks into docs/diagnose.md: `node scripts/diagnose-docs.mjs`. A test fails when the page is behind.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { suiteNames } from "../src/diagnose/check.ts";
import { checks } from "../src/diagnose/suites/index.ts";

const page = path.resolve(import.meta.dirname, "../docs/diagnose.md");
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
  const facts = [severity, ...(transport === undefined ? [] : [`${transport} only`]), ...(isThorough === true ? ["with `--full`"] : [])];
  return `- **${inert(question)}** \`${id}\` (${facts.join(", ")})\\\n  ${inert(why)}\\\n  _What to change:_ ${inert(remedy)} _Source:_ ${inert(source)}.\n`.replaceAll(
    "..\n",
    ".\n",
  );
}

/** Signs that Markdown would take for its own. */
function inert(text) {
  return text.replaceAll(/[<>[\]*]/g, String.raw`\$&`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) writeFileSync(page, withChecks(readFileSync(page, "utf8")));
