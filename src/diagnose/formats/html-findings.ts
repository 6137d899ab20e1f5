import type { Evidence } from "../check.ts";
import type { Finding, Report } from "../report/report.ts";
import { type FindingGroup, groupFindings, tellNothing, tellUncalled } from "./groups.ts";
import { html, type Markup, preformatted, sentence } from "./html-markup.ts";
import { linesOf, oneLine, shorten } from "./inert.ts";

const shownItems = 5;
/** A longer piece of evidence is folded. */
const openLength = 600;
const openLines = 12;
const maxEvidence = 20_000;

/** A card for each thing to change, worst first. */
export function drawFindings(report: Report): Markup {
  const groups = groupFindings(report.findings);
  const { text, isFine } = tellNothing(report);
  const found =
    groups.length > 0
      ? html`${groups.map((group) => drawCard(group, report))}`
      : html`<p class="nothing ${isFine ? "fine" : "open"}">${text}</p>`;
  const uncalled = tellUncalled(report);
  return html`${found}${uncalled === undefined ? undefined : html`<p class="nothing open">${uncalled}</p>`}`;
}

function drawCard(group: FindingGroup, report: Report): Markup {
  const { severity, check, why, remedy, source, findings } = group;
  const [only] = findings;
  const isOne = findings.length === 1;
  const question = report.checks.find(({ id }) => id === check)?.question ?? check;
  return html`<article class="card ${severity}">
<p class="card-head"><span class="chip ${severity}">${severity}</span><code>${check}</code>${isOne ? subjectOf(only) : html`<span class="count">${findings.length} findings</span>`}</p>
<h3>${sentence(isOne ? (only?.title ?? "") : question)}</h3>
<p>${sentence(why)}</p>
${isOne ? drawEvidence(only?.evidence ?? []) : drawItems(findings)}
<div class="remedy"><p><strong>What to change</strong></p><p>${sentence(remedy)}</p></div>
<p class="source">${sentence(source)}</p>
</article>
`;
}

function subjectOf(finding: Finding | undefined): Markup | undefined {
  return finding?.subject === undefined ? undefined : html`<code class="subject">${finding.subject}</code>`;
}

function drawItems(findings: readonly Finding[]): Markup {
  // One more is shown rather than folded alone.
  const shown = findings.length === shownItems + 1 ? findings.length : shownItems;
  const items = findings.map(
    ({ title, evidence }) => html`<li><p>${sentence(title)}</p>${drawEvidence(evidence)}</li>`,
  );
  const rest = items.slice(shown);
  return html`<ul class="items">${items.slice(0, shown)}</ul>
${rest.length === 0 ? undefined : html`<details class="more"><summary>${rest.length} more</summary><ul class="items">${rest}</ul></details>`}`;
}

/** What was seen, each with how it was seen; long ones are folded behind their beginning. */
export function drawEvidence(evidence: readonly Evidence[]): Markup | undefined {
  const seen = evidence.filter(({ text }) => text.trim() !== "");
  return seen.length === 0 ? undefined : html`<dl class="evidence">${seen.map(drawPiece)}</dl>`;
}

function drawPiece({ kind, text }: Evidence): Markup {
  const lines = linesOf(shorten(text, maxEvidence));
  const block = html`<pre>${preformatted(lines)}</pre>`;
  const isLong = text.length > openLength || lines.length > openLines;
  const folded = html`<details><summary>${shorten(oneLine(text), 160)}</summary>${block}</details>`;
  return html`<div><dt>${kind}</dt><dd>${isLong ? folded : block}</dd></div>`;
}
