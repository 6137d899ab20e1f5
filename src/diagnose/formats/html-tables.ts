import { formatDuration } from "../../clock.ts";
import type { CheckResult } from "../report/report.ts";
import { drawEvidence } from "./html-findings.ts";
import { html, type Markup, sentence } from "./html-markup.ts";
import {
  briefly,
  cellLooks,
  type Everywhere,
  type Matrix,
  type MatrixRow,
  matrixOf,
  statesIn,
  tellEverywhere,
  tellLeftOut,
  turned,
} from "./matrix.ts";

/*
 * Tables that become cards on a narrow screen. A table laid out as blocks is no table to a screen reader any more unless its parts say what
 * they are, hence the roles; each cell carries its column's name for the same reason.
 */

const shownRows = 16;
/** With more columns a cell says only what it says first; the rest shows under the pointer. */
const maxRoomy = 6;

/** The matrix of every check that has one. */
export function drawMatrices(checks: readonly CheckResult[]): Markup[] {
  return checks.flatMap((check) => {
    const matrix = matrixOf(check);
    return matrix === undefined ? [] : [drawMatrix(matrix, check)];
  });
}

function drawMatrix(matrix: Matrix, check: CheckResult): Markup {
  const left = tellLeftOut(matrix);
  return html`<p class="lead">${sentence(check.question)}</p>
${matrix.columns.length === 0 ? undefined : drawWide(matrix)}
${matrix.everywhere.map(drawEverywhere)}
${matrix.hidden === 0 ? undefined : html`<p class="source">${matrix.hidden} more tools are in the JSON report.</p>`}
${left === undefined ? undefined : html`<p class="source">${left}</p>`}`;
}

function drawEverywhere(one: Everywhere): Markup {
  return html`<details class="more alike"><summary><span class="state-${one.state}">${tellEverywhere(one)}</span></summary>
<p>Tools: ${one.tools.join(", ")}</p>
<p>Hosts: ${one.hosts.join(", ")}</p></details>
`;
}

/** The shorter side becomes the columns: a page is longer than it is wide. */
function drawWide(found: Matrix): Markup {
  const isTurned = found.columns.length > found.rows.length;
  const matrix = isTurned ? turned(found) : found;
  const legend = statesIn(matrix).map(
    (state) =>
      html`<li class="state-${state}"><span aria-hidden="true">${cellLooks[state].sign}</span> ${cellLooks[state].meaning}</li>`,
  );
  const rest = matrix.rows.slice(shownRows);
  const noun = isTurned ? "tools" : "hosts";
  const shared = found.shared.map(
    ({ name, tools }) => html`<details class="more alike"><summary>${name}</summary><p>${tools.join(", ")}</p></details>
`,
  );
  return html`<ul class="legend" aria-label="What the signs mean">${legend}</ul>
${drawGrid(matrix, matrix.rows.slice(0, shownRows), isTurned)}
${rest.length === 0 ? undefined : html`<details class="more"><summary>${rest.length} more ${noun}</summary>${drawGrid(matrix, rest, isTurned)}</details>`}
${shared}`;
}

function drawGrid({ columns }: Matrix, rows: readonly MatrixRow[], isTurned: boolean): Markup {
  const head = columns.map((name) => html`<th role="columnheader" scope="col">${name}</th>`);
  const isDense = columns.length > maxRoomy;
  return html`<table role="table" class="matrix ${isDense ? "dense" : "roomy"}" aria-label="${isTurned ? "Tools and hosts" : "Hosts and tools"}">
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">${isTurned ? "Tool" : "Host"}</th>${head}</tr></thead>
<tbody role="rowgroup">${rows.map((row) => drawRow(row, columns, isDense))}</tbody>
</table>`;
}

function drawRow({ name, cells }: MatrixRow, columns: readonly string[], isDense: boolean): Markup {
  const drawn = cells.map(({ state, text }, at) => {
    const { sign, meaning } = cellLooks[state];
    return html`<td role="cell" class="state-${state}" data-label="${columns[at]}" title="${text}"><span class="sign" role="img" aria-label="${meaning}">${sign}</span> ${isDense ? briefly(text) : text}</td>`;
  });
  return html`<tr role="row"><th role="rowheader" scope="row">${name}</th>${drawn}</tr>
`;
}

/** Every check with how it ended. */
export function drawChecks(checks: readonly CheckResult[]): Markup {
  if (checks.length === 0) return html`<p class="nothing">No check was run.</p>`;
  return html`<table role="table" class="checks" aria-labelledby="checks-title">
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Outcome</th><th role="columnheader" scope="col">Question</th><th role="columnheader" scope="col">Seen</th><th role="columnheader" scope="col">Time</th></tr></thead>
<tbody role="rowgroup">${checks.map(drawCheck)}</tbody>
</table>`;
}

function drawCheck({ id, question, outcome, note, durationMs, evidence }: CheckResult): Markup {
  return html`<tr role="row">
<td role="cell" class="outcome"><span class="chip ${outcome}">${outcome}</span></td>
<th role="rowheader" scope="row">${sentence(question)}<br><code>${id}</code></th>
<td role="cell" class="seen">${note === undefined ? undefined : sentence(note)}${drawEvidence(evidence ?? [])}</td>
<td role="cell" class="time">${outcome === "skipped" ? "–" : formatDuration(durationMs)}</td>
</tr>
`;
}
