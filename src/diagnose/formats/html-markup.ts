import { oneLine, shorten } from "./inert.ts";

/** A piece of a page that is markup already. Only `html` makes one, so a text can never become one by mistake. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Markup | readonly Markup[] | undefined;

const maxText = 5_000;

/** Markup with values in it; every text is escaped and loses what a page would obey. */
export function html(parts: TemplateStringsArray, ...values: readonly Part[]): Markup {
  return new Markup(parts.map((part, at) => part + (at < values.length ? toText(values[at]) : "")).join(""));
}

function toText(value: Part): string {
  if (value === undefined) return "";
  if (value instanceof Markup) return value.text;
  if (typeof value === "object") return value.map(({ text }) => text).join("");
  return escapeText(shorten(oneLine(String(value)), maxText));
}

/** Lines as they are, for `<pre>`. */
export function preformatted(lines: readonly string[]): Markup {
  return new Markup(lines.map(escapeText).join("\n"));
}

/** A sentence in which names between backticks are code. */
export function sentence(text: string): Markup {
  const parts = shorten(oneLine(text), maxText).split(/`([^`]+)`/);
  return new Markup(
    parts.map((part, at) => (at % 2 === 1 ? `<code>${escapeText(part)}</code>` : escapeText(part))).join(""),
  );
}

function escapeText(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
