import { formatDuration } from "../../clock.ts";
import type { Report } from "../report/report.ts";
import { hasScore, whyNoScore } from "../report/score.ts";
import { groupSkipped } from "../report/skipped.ts";
import { countBySeverity, countBySuite, countWords, outcomes, tellCalls, tellSkipped } from "./groups.ts";
import { drawFindings } from "./html-findings.ts";
import { html, type Markup, sentence } from "./html-markup.ts";
import { style } from "./html-style.ts";
import { drawChecks, drawMatrices } from "./html-tables.ts";

/** Nothing is loaded and nothing runs, whatever a server has sent. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/** The report as one page that needs nothing else: no script, no request, light and dark, on paper too. */
export function toHtml(report: Report): string {
  const { target } = report;
  const name = target.server?.name ?? target.name;
  const matrices = drawMatrices(report.checks);
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${name}: ${hasScore(report) ? `${report.score.points} of 100, grade ${report.score.grade}` : "no grade"}</title>
<style>${style}</style>
</head>
<body>
<a class="skip" href="#findings">To the findings</a>
${drawHead(report)}
<nav aria-label="Parts of this report"><ul>
<li><a href="#findings">Findings</a></li>
${matrices.length > 0 ? html`<li><a href="#hosts">Hosts</a></li>` : undefined}
<li><a href="#suites">Suites</a></li>
${report.checks.some(({ outcome }) => outcome === "skipped") ? html`<li><a href="#skipped">Skipped</a></li>` : undefined}
<li><a href="#checks">All checks</a></li>
</ul></nav>
<main>
<section id="findings" aria-labelledby="findings-title"><h2 id="findings-title">Findings</h2>
${drawFindings(report)}
</section>
${matrices.length > 0 ? html`<section id="hosts" aria-labelledby="hosts-title"><h2 id="hosts-title">Hosts</h2>${matrices}</section>` : undefined}
<section id="suites" aria-labelledby="suites-title"><h2 id="suites-title">Suites</h2>
${drawSuites(report)}
</section>
${drawSkipped(report)}
<section id="checks" aria-labelledby="checks-title"><h2 id="checks-title">All checks</h2>
${drawChecks(report.checks)}
</section>
</main>
<footer class="page-end">Made by Meanwhile ${report.madeBy.version}. A check costs once, at its worst finding: blocker 30 points, major 10, minor 3, info nothing. A blocker allows no better grade than C, a major none better than B.</footer>
</body>
</html>
`;
  return page.text;
}

function drawHead(report: Report): Markup {
  const { target, startedAt, durationMs, isFull, incomplete, findings, headline } = report;
  const title =
    target.server === undefined
      ? html`${target.name}`
      : html`${target.server.name} <span class="version">${target.server.version}</span>`;
  const counts = countBySeverity(findings).map(
    ({ severity, count }) => html`<li class="chip ${severity}">${countWords(count, severity)}</li>`,
  );
  return html`<header class="top">
${headline === undefined ? undefined : html`<p class="headline" role="note"><strong>✗</strong> ${sentence(headline)}</p>`}
<div class="what">
<p class="kicker">Diagnosis of an MCP server</p>
<h1>${title}</h1>
<p class="target"><code>${target.name}</code></p>
<p class="explanation">${hasScore(report) ? report.score.explanation : whyNoScore(report)}</p>
<ul class="chips" aria-label="Findings by severity">${counts.length === 0 ? html`<li class="chip">no findings</li>` : html`<li>${countWords(findings.length, "finding")}:</li>${counts}`}</ul>
</div>
${drawDial(report)}
${incomplete === undefined ? undefined : html`<p class="incomplete" role="note"><strong>Incomplete.</strong> ${sentence(incomplete)}</p>`}
<dl class="facts">
<div><dt>Transport</dt><dd>${target.transport}</dd></div>
<div><dt>Revisions</dt><dd>${drawList(target.revisions) ?? "none seen"}</dd></div>
<div><dt>Tasks</dt><dd>${drawList(target.tasks) ?? "none declared"}</dd></div>
<div><dt>Tools</dt><dd>${tellCalls(report) ?? target.tools}</dd></div>
<div><dt>Checked</dt><dd><time datetime="${startedAt}">${startedAt.slice(0, 16).replace("T", " ")} UTC</time>, ${formatDuration(durationMs)}, ${isFull ? "all checks" : "quick checks"}</dd></div>
</dl>
</header>`;
}

/** Dates that are not broken at their hyphens. */
function drawList(items: readonly string[]): Markup | undefined {
  return items.length === 0
    ? undefined
    : html`${items.map((item, at) => html`<span class="whole">${item}${at < items.length - 1 ? "," : ""}</span> `)}`;
}

const around = 2 * Math.PI * 52;

function drawDial(report: Report): Markup {
  if (!hasScore(report))
    return html`<figure class="dial">
<svg viewBox="0 0 120 120" role="img" aria-label="no grade">
<circle class="track" cx="60" cy="60" r="52"/>
<text class="points" x="60" y="72">–</text>
</svg>
<figcaption><strong>no grade</strong></figcaption>
</figure>`;
  const { points, grade } = report.score;
  const filled = Math.round((around * points) / 100);
  return html`<figure class="dial grade-${grade}">
<svg viewBox="0 0 120 120" role="img" aria-label="${points} of 100 points">
<circle class="track" cx="60" cy="60" r="52"/>
${points === 0 ? undefined : html`<circle class="fill" cx="60" cy="60" r="52" stroke-dasharray="${filled} ${Math.ceil(around)}" transform="rotate(-90 60 60)"/>`}
<text class="points" x="60" y="66">${points}</text>
<text class="of" x="60" y="84">of 100</text>
</svg>
<figcaption>Grade <strong>${grade}</strong></figcaption>
</figure>`;
}

function drawSuites(report: Report): Markup {
  const tiles = countBySuite(report).map(({ suite, counts }) => {
    const some = outcomes.filter((outcome) => counts[outcome] > 0);
    const bars = some.map((outcome) => html`<span class="bar-${outcome}" style="flex-grow:${counts[outcome]}"></span>`);
    const words = some.map((outcome) => `${counts[outcome]} ${outcome}`).join(", ") || "nothing asked";
    return html`<li class="tile"><h3>${suite}</h3><div class="bar" aria-hidden="true">${bars}</div><p>${words}</p></li>`;
  });
  return html`<ul class="tiles">${tiles}</ul>`;
}

/** What was not asked, by the reason. */
function drawSkipped({ checks }: Report): Markup | undefined {
  const count = tellSkipped(checks);
  if (count === undefined) return undefined;
  const items = groupSkipped(checks).map(
    ({ why, count: number, checks: ids }) =>
      html`<li><details class="more"><summary>${countWords(number, "check")}: ${sentence(why)}</summary><p>${ids.map((id, at) => html`<code>${id}</code>${at < ids.length - 1 ? ", " : ""}`)}</p></details></li>`,
  );
  return html`<section id="skipped" aria-labelledby="skipped-title"><h2 id="skipped-title">Skipped</h2>
<p>${count}; they say nothing about the server.</p>
<ul class="items">${items}</ul>
</section>`;
}
