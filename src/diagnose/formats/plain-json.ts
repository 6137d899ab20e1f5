/**
 * JSON that may be shown as it is: equal when parsed, but nothing in it moves a cursor or turns the direction of
 * writing.
 */
export function toPlainJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2).replaceAll(/[\u007f-\u009f\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu, escaped);
  return `${text}\n`;
}

function escaped(letter: string): string {
  return letter
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}
