/** A URL as others may have it: who is meant stays, the password goes. Anything else as it is. */
export function withoutPassword(text: string): string {
  return text.replace(/^([a-z][\w+.-]*:\/\/[^/?#@:]*):.*@(?=[^@]*$)/is, "$1@");
}
