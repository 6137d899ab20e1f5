import type { EngineInput, Transformed } from "./_engines.ts";
import { parseMarkup } from "./_markup.ts";
import { Page } from "./_page.ts";
import { decodeText } from "./_text.ts";

const unseen = new Set(["script", "style", "noscript", "template", "svg", "math", "iframe", "object", "head"]);
const blocks = new Set(
  "p div section article main header footer aside nav figure figcaption blockquote ul ol dl table form fieldset address details summary hr".split(
    " ",
  ),
);
const lines = new Set(["br", "tr", "dt", "dd", "option", "caption"]);

/**
 * What a reader sees of a page. The parser takes one pass and keeps no tree, so a page may be large and badly nested.
 */
export function fromHtml({ bytes, options }: EngineInput): Transformed {
  const page = new Page();
  let title = "";
  let isTitle = false;
  let hidden = 0;
  const addresses: string[] = [];
  parseMarkup(decodeText(bytes), {
    onopentag(tag, attributes) {
      if (tag === "title") isTitle = title === "";
      // A head that is never closed ends here.
      if (tag === "body") hidden = 0;
      if (unseen.has(tag)) hidden++;
      if (hidden > 0) return;
      const level = /^h([1-6])$/.exec(tag)?.[1];
      if (level !== undefined) page.breakBlock(`${"#".repeat(Number(level))} `);
      else if (blocks.has(tag)) page.breakBlock();
      else if (lines.has(tag)) page.breakLine();
      else if (tag === "li") page.breakLine("- ");
      else if (tag === "td" || tag === "th") page.add(" | ");
      else if (tag === "img" && attributes.alt) page.add(` ${attributes.alt} `);
      else if (tag === "a") addresses.push(attributes.href ?? "");
      else if (tag === "pre") {
        page.breakBlock();
        page.isVerbatim = true;
      }
    },
    ontext(words) {
      if (isTitle) title += words;
      else if (hidden === 0) page.add(words);
    },
    onclosetag(tag) {
      if (tag === "title") isTitle = false;
      if (unseen.has(tag)) hidden = Math.max(0, hidden - 1);
      if (hidden > 0) return;
      const address = tag === "a" ? addresses.pop() : undefined;
      if (options.links && address !== undefined && /^[a-z]+:|^[./]/i.test(address)) page.add(` (${address})`);
      if (tag === "pre") {
        page.breakBlock();
        page.isVerbatim = false;
      } else if (blocks.has(tag) || /^h[1-6]$/.test(tag)) page.breakBlock();
    },
  });
  return { text: page.toText(), title: title.replaceAll(/\s+/g, " ").trim(), facts: {} };
}
