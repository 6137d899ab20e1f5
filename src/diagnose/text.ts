/**
 * What a server sends is shown, never obeyed: it loses its control characters, its length and whatever looks like a
 * secret.
 */

const maxLength = 400;
// Controls, marks without a look of their own (direction, joiners, tags), private letters, lone halves of a character,
// the two rare line ends, and whatever else is drawn as nothing; only the selector that makes a sign a coloured one
// stays.
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]|(?!\ufe0f)\p{Default_Ignorable_Code_Point}/gu;

/** A text as it may be shown: one line, without anything a terminal or a page would obey. */
export function printable(text: string, max = maxLength): string {
  // Cut before anything is looked at, so that a text of a hundred megabytes costs nothing.
  const cut = text.length > max * 4 ? text.slice(0, max * 4) : text;
  const clean = cut.replaceAll(/\s+/g, " ").replaceAll(unprintable, "�").trim();
  // A cut through the middle of a character leaves half of it.
  return clean.length > max || cut.length < text.length
    ? `${clean.slice(0, max).replace(/[\ud800-\udbff]$/, "")}…`
    : clean;
}

// In JSON within JSON the quotes have backslashes before them.
const secretFields =
  /((?:\\{0,3}")?(?:authorization|proxy-authorization|cookie|set-cookie|x-api-key|api[_-]?key|(?<!progress)token|access[_-]?token|refresh[_-]?token|secret|client[_-]?secret|access[_-]?key|private[_-]?key|database[_-]?url|password|passwd|mcp-session-id)(?:\\{0,3}")?\s{0,20}[:=]\s{0,20})(\\{0,3}"[^"\\]{0,4096}(?:\\{0,3}")?|[^\s,;}"]{1,4096}(?:\s{1,20}[A-Za-z0-9._~+/=-]{8,4096})?)/gi;

/**
 * What is known to be a secret by its look: where it comes from, and the pattern. Every pattern is bounded, so that no
 * text makes it slow.
 */
export const secretPatterns: readonly { readonly name: string; readonly pattern: RegExp }[] = [
  { name: "an OpenAI or Anthropic key", pattern: /\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,400}/ },
  { name: "a GitHub token", pattern: /\b(?:gh[pousr]_[A-Za-z0-9]{20,300}|github_pat_[A-Za-z0-9_]{20,300})/ },
  { name: "a GitLab token", pattern: /\bglpat-[A-Za-z0-9_-]{20,300}/ },
  { name: "an npm token", pattern: /\bnpm_[A-Za-z0-9]{36,300}/ },
  { name: "a Hugging Face token", pattern: /\bhf_[A-Za-z0-9]{30,300}/ },
  { name: "an AWS access key", pattern: /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/ },
  { name: "a Google key", pattern: /\b(?:AIza[A-Za-z0-9_-]{30,100}|ya29\.[A-Za-z0-9_-]{20,2000})/ },
  { name: "a Slack token", pattern: /\bxox[abeoprs]-[A-Za-z0-9-]{10,300}/ },
  { name: "a Stripe key", pattern: /\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,300}/ },
  { name: "a SendGrid key", pattern: /\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,100}/ },
  { name: "a JSON web token", pattern: /\beyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{0,4096}/ },
  { name: "a private key", pattern: /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]{0,8192}/ },
  { name: "a bearer token", pattern: /\bBearer\s{1,20}[A-Za-z0-9._~+/=-]{16,4096}/i },
  { name: "a password in an address", pattern: /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@]{1,200}:[^\s/@]{1,200}@/i },
];

const blank = "•••";
const maxLooked = 10_000;

/**
 * Blanks what is a secret: the given values, fields that are named so, and what looks like one. Of a very long text
 * only the beginning is kept.
 */
export function redact(text: string, secrets: readonly string[] = []): string {
  let clean = text.length > maxLooked ? toWholeWords(text.slice(0, maxLooked)) : text;
  for (const secret of secrets.flatMap(waysToWrite)) clean = clean.replaceAll(secret, blank);
  for (const { pattern } of secretPatterns)
    clean = clean.replaceAll(new RegExp(pattern.source, `${pattern.flags.replace("g", "")}g`), blank);
  return clean.replaceAll(secretFields, (_all, name: string) => `${name}${blank}`);
}

/**
 * Without the last word, which was cut: it could be half a secret, which nothing would know again. Of one endless word
 * little is kept.
 */
function toWholeWords(cut: string): string {
  let end = cut.length;
  while (end > 0 && !/[\s"',;]/.test(cut.charAt(end - 1))) end--;
  return cut.slice(0, end === 0 ? 200 : end);
}

/** A secret as it is, within JSON, and within a URL; the longest first, so that none leaves a rest of another. */
function waysToWrite(secret: string): string[] {
  if (secret.length < 4) return [];
  const quoted = JSON.stringify(secret).slice(1, -1);
  return [
    ...new Set([JSON.stringify(quoted).slice(1, -1), quoted, encodeURIComponent(secret.toWellFormed()), secret]),
  ].sort((a, b) => b.length - a.length);
}

/** A word as a shell takes it. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
