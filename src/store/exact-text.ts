/**
 * Text that a database keeps as UTF-8 and without NUL, and gives back as it was. What such a database would refuse, or
 * replace, is written in other signs after a mark of its own, which next to no text contains; all other text stays as
 * it is.
 */
const mark = "\u001a";
const isUnkeepable = new RegExp(`[\\0${mark}]`);
const unkeepable = new RegExp(`[\\0${mark}]|\\p{Surrogate}`, "gu");
const written = new RegExp(`${mark}([0-9a-f]{4})`, "g");

/** Equal texts stay equal, and different ones different. */
export function toExactText(text: string): string {
  if (!isUnkeepable.test(text) && text.isWellFormed()) return text;
  return text.replace(unkeepable, (sign) => `${mark}${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function fromExactText(text: string): string {
  return text.includes(mark)
    ? text.replace(written, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    : text;
}
