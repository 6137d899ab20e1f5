import type { Severity } from "../../check.ts";

/** What is in a text but not seen. */
export interface Hidden {
  readonly what: string;
  readonly severity: Severity;
  /** The place where it begins, with its code points written out. */
  readonly escaped: string;
  /** What tags spell, which are letters nobody sees. */
  readonly message?: string;
}

/** So few can be left over from copying; more of them can carry a message. */
const manyMarks = 8;

// Three flags (England, Scotland, Wales) are written with tags, and are seen.
const flags = /\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{2,6}\u{e007f}/gu;
const tags = /[\u{e0000}-\u{e007f}]+/gu;
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/u;
const overrides = /[\u202d\u202e]/u;
const turns = /[\u202a\u202b\u2066-\u2068]/u;
const rightToLeft = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
// Two in a row choose nothing: they number something.
const selectors = /\p{Variation_Selector}{2}/u;
// A joiner is part of many signs and scripts; between Latin letters it is not.
const marks =
  /\u200b|\u2060|[\u2061-\u2064]|(?<!^)\ufeff|(?<=[\p{Script=Latin}\s\d])[\u200c\u200d](?=[\p{Script=Latin}\s\d\u200b-\u200d])/gu;

/** The worst that is hidden in a text; undefined where all of it is seen. */
export function findHidden(text: string): Hidden | undefined {
  const rest = text.replaceAll(flags, "");
  const spelled = [...rest.matchAll(tags)].map(([letters]) => letters).join("");
  if (spelled !== "")
    return {
      what: "invisible letters (Unicode tags)",
      severity: "major",
      escaped: aroundIt(rest, rest.search(tags)),
      message: fromTags(spelled),
    };
  if (controls.test(rest))
    return {
      what: "control characters that a terminal obeys",
      severity: "major",
      escaped: aroundIt(rest, rest.search(controls)),
    };
  if (overrides.test(rest))
    return {
      what: "marks that turn the direction of writing",
      severity: "major",
      escaped: aroundIt(rest, rest.search(overrides)),
    };
  if (selectors.test(rest))
    return { what: "rows of invisible selectors", severity: "major", escaped: aroundIt(rest, rest.search(selectors)) };
  if (turns.test(rest) && !rightToLeft.test(rest))
    return {
      what: "marks that turn the direction of writing",
      severity: "minor",
      escaped: aroundIt(rest, rest.search(turns)),
    };
  const count = [...rest.matchAll(marks)].length;
  if (count === 0) return undefined;
  return {
    what: "characters without width",
    severity: count >= manyMarks ? "major" : "minor",
    escaped: aroundIt(rest, rest.search(marks)),
  };
}

/** Each tag is an ASCII letter, moved to where nothing is drawn. */
function fromTags(letters: string): string {
  return Array.from(letters, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) - 0xe0000)).join("");
}

/** A little of the text, with everything unseen as its code point. */
function aroundIt(text: string, at: number): string {
  return text
    .slice(Math.max(0, at - 40), at + 60)
    .replaceAll(
      /[\p{Cc}\p{Cf}\p{Cs}]|\p{Variation_Selector}/gu,
      (letter) => `<U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`,
    );
}
