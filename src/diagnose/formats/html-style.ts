import { html } from "./html-markup.ts";

/**
 * The page's look. Colours of texts keep a contrast of at least 4.5 to their ground, light and dark; a test measures
 * it.
 */
export const style = html`
:root{--ground:#faf9f6;--card:#fff;--text:#20242a;--soft:#565c66;--line:#e2dfd8;--code:#f3f1ec;--accent:#2b5c8f;
--blocker:#9c1c14;--blocker-ground:#fce6e3;--major:#8f3d00;--major-ground:#fdebd9;--minor:#695100;--minor-ground:#faf1cc;--info:#1c4f86;--info-ground:#e3eefa;
--passed:#1d6238;--passed-ground:#e0f2e6;--remedy:#eef6f0;--bar-passed:#4f9d6c;--bar-failed:#c4443a;--bar-skipped:#cfccc4;--bar-unfinished:#d9a21b}
@media screen and (prefers-color-scheme:dark){:root{--ground:#15171b;--card:#1d2026;--text:#e7e8ea;--soft:#a5abb5;--line:#333841;--code:#262a32;--accent:#8fbdf0;
--blocker:#ffb3aa;--blocker-ground:#4b1a16;--major:#ffc08a;--major-ground:#472a10;--minor:#ecd27a;--minor-ground:#3c3310;--info:#a9cdf7;--info-ground:#1b3553;
--passed:#96d9ae;--passed-ground:#173a25;--remedy:#1a2b21;--bar-passed:#4f9d6c;--bar-failed:#d2574c;--bar-skipped:#4a505b;--bar-unfinished:#c99a2a}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:auto}
body{margin:0 auto;padding:0 1.5rem 3rem;max-width:72rem;background:var(--ground);color:var(--text);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1,h2,h3,p,ul,dl,dd,figure,pre{margin:0;padding:0}
ul{list-style:none}
a{color:var(--accent)}
a:focus-visible,summary:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:4px}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:.875em}
summary{cursor:pointer}
.skip{position:absolute;left:-100vw}
.skip:focus{left:1rem;top:1rem;padding:.5rem 1rem;background:var(--card);z-index:1}
.top{display:grid;grid-template-columns:minmax(0,1fr) auto;gap:1.25rem 2.5rem;padding:3rem 0 1.75rem;align-items:center}
.kicker{color:var(--soft);font-size:.875rem}
h1{font-size:2.25rem;line-height:1.2;font-weight:650;letter-spacing:-.02em;margin:.15rem 0 .35rem}
.version{color:var(--soft);font-weight:400}
.target{color:var(--soft)}
.explanation{margin-top:1rem;max-width:44rem}
.chips{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem;margin-top:1rem}
.chip{display:inline-block;padding:.1rem .65rem;border-radius:1rem;font-size:.8125rem;font-weight:600;white-space:nowrap;background:var(--code);color:var(--soft)}
.chip.blocker,.chip.failed{background:var(--blocker-ground);color:var(--blocker)}
.chip.major{background:var(--major-ground);color:var(--major)}
.chip.minor,.chip.unfinished{background:var(--minor-ground);color:var(--minor)}
.chip.info{background:var(--info-ground);color:var(--info)}
.chip.passed{background:var(--passed-ground);color:var(--passed)}
.dial{width:10.5rem;text-align:center}
.dial svg{display:block;width:100%}
.dial circle{fill:none;stroke-width:9;stroke-linecap:round}
.dial .track{stroke:var(--line)}
.dial .fill{stroke:var(--bar-unfinished)}
.dial.grade-A .fill,.dial.grade-B .fill{stroke:var(--bar-passed)}
.dial.grade-F .fill{stroke:var(--bar-failed)}
.dial text{text-anchor:middle;fill:var(--text)}
.dial .points{font-size:36px;font-weight:650;letter-spacing:-.03em}
.dial .of{font-size:12px;fill:var(--soft)}
.dial figcaption{margin-top:.35rem;color:var(--soft)}
.dial strong{color:var(--text);font-size:1.25rem}
.headline{order:-2;grid-column:1/-1;margin:0;padding:.75rem 1rem;border-radius:.5rem;background:var(--blocker-ground);color:var(--blocker);font-weight:600;overflow-wrap:anywhere}
.incomplete{grid-column:1/-1;padding:.75rem 1rem;border-radius:.5rem;background:var(--minor-ground);color:var(--minor)}
.facts{grid-column:1/-1;display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:1rem;padding-top:1.25rem;border-top:1px solid var(--line)}
.facts dt{color:var(--soft);font-size:.8125rem}
.whole{display:inline-block}
.facts div:last-child{grid-column:span 2}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;padding:.75rem 0;border-top:1px solid var(--line);border-bottom:1px solid var(--line)}
nav a{text-decoration:none}
nav a:hover{text-decoration:underline}
h2{font-size:1.375rem;font-weight:650;letter-spacing:-.01em;margin:2.5rem 0 1rem}
h3{font-size:1.0625rem;line-height:1.4;font-weight:620}
.nothing{padding:1rem 1.25rem;margin-bottom:1rem;border-radius:.75rem;background:var(--passed-ground);color:var(--passed)}
.nothing.open{background:var(--minor-ground);color:var(--minor)}
.card{display:grid;gap:.75rem;padding:1.25rem 1.5rem;margin-bottom:1rem;background:var(--card);border:1px solid var(--line);border-left:4px solid var(--line);border-radius:.75rem}
.card>*{min-width:0}
.card.blocker{border-left-color:var(--bar-failed)}
.card.major{border-left-color:#d9772a}
.card.minor{border-left-color:var(--bar-unfinished)}
.card.info{border-left-color:#5b93cf}
.card-head{display:flex;flex-wrap:wrap;gap:.35rem .75rem;align-items:center;color:var(--soft)}
.card-head code,.count{font-size:.8125rem}
.subject{padding:.1rem .4rem;border-radius:.3rem;background:var(--code);color:var(--text)}
.evidence{display:grid;gap:.5rem}
.evidence>div{display:grid;grid-template-columns:5.5rem minmax(0,1fr);gap:.75rem}
.evidence dt{color:var(--soft);font-size:.8125rem;padding-top:.4rem}
.evidence pre,.evidence summary{padding:.4rem .75rem;border-radius:.4rem;background:var(--code);white-space:pre-wrap;overflow-wrap:anywhere;font-size:.8125rem;line-height:1.5}
.evidence summary{word-break:break-all;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
.evidence details pre{margin-top:.35rem}
.items{display:grid;gap:.75rem}
.items li{display:grid;gap:.35rem;padding-left:1rem;border-left:2px solid var(--line);min-width:0}
.more{margin-top:.25rem}
.more>summary{color:var(--accent)}
.more>.items,.more>table{margin-top:.75rem}
.more>p{margin:.35rem 0 0 1rem;color:var(--soft);font-size:.875rem}
.alike{margin-top:.75rem}
.remedy{padding:.75rem 1rem;border-radius:.5rem;background:var(--remedy)}
.remedy strong{color:var(--passed);font-size:.8125rem}
.source{color:var(--soft);font-size:.8125rem}
.lead{margin-bottom:.5rem}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin-bottom:.75rem;font-size:.875rem}
.state-ok{color:var(--passed)}
.state-progress{color:var(--minor)}
.state-cut{color:var(--blocker)}
.state-unknown{color:var(--soft)}
table{width:100%;border-collapse:separate;border-spacing:0;background:var(--card);border:1px solid var(--line);border-radius:.75rem;overflow:hidden;font-size:.9375rem}
th,td{padding:.55rem .75rem;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--soft);font-size:.8125rem;font-weight:600;vertical-align:bottom}
tbody th{font-weight:500}
.matrix{table-layout:fixed}
.matrix td{font-size:.875rem}
.matrix td.state-cut{background:var(--blocker-ground)}
.matrix td.state-progress{background:var(--minor-ground)}
.matrix .sign{font-weight:700}
.matrix.dense thead th:first-child{width:16%}
.matrix.dense td,.matrix.dense thead th+th{padding:.4rem .25rem;font-size:.75rem;line-height:1.35;text-align:center}
.matrix.dense thead th+th{font-size:.6875rem}
.matrix.dense .sign{display:block;font-size:.9375rem}
.checks{table-layout:fixed}
.checks th:first-child,.checks .outcome{width:8rem}
.checks thead th:last-child{width:6rem}
.checks thead th:nth-child(3){width:34%}
.checks tbody code{color:var(--soft)}
.checks .time{white-space:nowrap;color:var(--soft);font-variant-numeric:tabular-nums}
.checks .seen .evidence{margin-top:.35rem}
.checks .seen .evidence>div{grid-template-columns:minmax(0,1fr);gap:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:1rem}
.tile{padding:1rem 1.25rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem}
.tile p{color:var(--soft);font-size:.875rem}
.bar{display:flex;gap:2px;height:.5rem;margin:.6rem 0;border-radius:.25rem;overflow:hidden;background:var(--code)}
.bar span{flex-basis:0}
.bar-passed{background:var(--bar-passed)}
.bar-failed{background:var(--bar-failed)}
.bar-skipped{background:var(--bar-skipped)}
.bar-unfinished{background:var(--bar-unfinished)}
.page-end{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--soft);font-size:.8125rem}
@media (max-width:44rem){
body{padding:0 1rem 2rem}
.top{grid-template-columns:minmax(0,1fr);padding-top:1.75rem}
h1{font-size:1.625rem}
.dial{width:9rem;justify-self:center;grid-row:1}
.facts{grid-template-columns:1fr 1fr}
.card{padding:1rem}
.evidence>div{grid-template-columns:minmax(0,1fr);gap:.2rem}
table,tbody,tr,tbody th,td{display:block}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
table,.matrix,.checks{background:none;border:0;border-radius:0}
tr{padding:.75rem 1rem;margin-bottom:.75rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem}
th,td{padding:0;border:0}
.checks .outcome,.checks th:first-child{width:auto}
.checks tr{display:grid;grid-template-columns:minmax(0,1fr) auto;gap:.4rem .75rem}
.checks th,.checks .seen{grid-column:1/-1}
.checks .time{grid-row:1;grid-column:2}
.checks .seen:empty{display:none}
.matrix tr{display:grid;grid-template-columns:1fr 1fr;gap:.4rem .75rem}
.matrix tbody th{grid-column:1/-1;font-weight:620}
.matrix td:only-of-type{grid-column:1/-1}
.matrix td,.matrix.dense td{font-size:.8125rem;padding:.25rem .5rem;border-radius:.35rem;text-align:left}
.matrix.dense .sign{display:inline;font-size:inherit}
.matrix td::before{content:attr(data-label);display:block;color:var(--text);font-size:.75rem}
}
@media print{
:root{--ground:#fff;--card:#fff}
body{max-width:none;padding:0;font-size:10pt}
nav,.skip{display:none}
.card,.tile,tr{break-inside:avoid}
h2,h3{break-after:avoid}
details::details-content{content-visibility:visible;display:block;block-size:auto}
.chip,.remedy,.bar,.bar span,td{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
`;
