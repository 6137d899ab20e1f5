import { Unreadable } from "../_pack/limits.ts";
import type { EngineInput, Transformed } from "./_engines.ts";
import { parseMarkup } from "./_markup.ts";
import { Page } from "./_page.ts";
import { unpack } from "./_zip.ts";

const parts = new Set(["word/document.xml", "word/_rels/document.xml.rels", "docProps/core.xml"]);

/** The text of a Word document: of its body, in reading order, deleted passages left out. */
export function fromDocx({ bytes, options, limits }: EngineInput): Transformed {
  const files = unpack(bytes, parts, limits);
  const textOf = (part: string) => new TextDecoder().decode(files.get(part));
  const body = textOf("word/document.xml");
  if (body === "") throw new Unreadable("it holds no Word document");
  const links = options.links ? readLinks(textOf("word/_rels/document.xml.rels")) : new Map<string, string>();
  return { text: readBody(body, links), title: readTitle(textOf("docProps/core.xml")), facts: {} };
}

function readBody(xml: string, links: ReadonlyMap<string, string>): string {
  const page = new Page();
  const open: string[] = [];
  let isText = false;
  let cells = 0;
  let inCell = 0;
  parseMarkup(
    xml,
    {
      onopentag(tag, attributes) {
        if (tag === "w:p" && inCell === 0) page.breakBlock();
        else if (tag === "w:t") isText = true;
        else if (tag === "w:tab") page.add(" ");
        else if (tag === "w:br" || tag === "w:cr") page.breakLine();
        else if (tag === "w:pStyle") page.add(markOf(attributes["w:val"] ?? ""));
        else if (tag === "w:numPr" && inCell === 0) page.add("- ");
        else if (tag === "w:tbl" && inCell === 0) page.breakBlock();
        else if (tag === "w:tr") {
          page.breakLine();
          cells = 0;
        } else if (tag === "w:tc") {
          if (cells++ > 0) page.add(" | ");
          inCell++;
        } else if (tag === "w:hyperlink") open.push(links.get(attributes["r:id"] ?? "") ?? "");
      },
      ontext(words) {
        if (isText) page.add(words);
      },
      onclosetag(tag) {
        if (tag === "w:t") isText = false;
        else if (tag === "w:tc") inCell--;
        else if (tag === "w:p" && inCell > 0) page.add(" ");
        else if (tag === "w:tbl") page.breakBlock();
        else if (tag === "w:hyperlink") {
          const address = open.pop();
          if (address) page.add(` (${address})`);
        }
      },
    },
    { xmlMode: true },
  );
  return page.toText();
}

/** Word's own names for headings; other styles are names of their own. */
function markOf(style: string): string {
  const level = /^(?:heading|berschrift|titre|ttulo)\s?([1-6])$/i.exec(style)?.[1];
  return level !== undefined ? `${"#".repeat(Number(level))} ` : /^title$/i.test(style) ? "# " : "";
}

function readLinks(xml: string): Map<string, string> {
  const links = new Map<string, string>();
  parseMarkup(
    xml,
    {
      onopentag(tag, { Id, Target, TargetMode }) {
        if (tag === "Relationship" && TargetMode === "External" && Id !== undefined && Target !== undefined)
          links.set(Id, Target);
      },
    },
    { xmlMode: true },
  );
  return links;
}

function readTitle(xml: string): string {
  let title = "";
  let isTitle = false;
  parseMarkup(
    xml,
    {
      onopentag(tag) {
        isTitle = tag === "dc:title";
      },
      ontext(words) {
        if (isTitle) title += words;
      },
      onclosetag() {
        isTitle = false;
      },
    },
    { xmlMode: true },
  );
  return title.trim();
}
