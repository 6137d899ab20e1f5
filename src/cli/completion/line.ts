/**
 * Reads the line before the cursor as its shell would: quotes and backslashes are taken away.
 *
 * A shell replaces only part of the word that is being typed. bash's readline begins that part behind an open quote, or
 * behind the last character of COMP_WORDBREAKS that is not quoted (`@` and `$` belong to the part). What stands before
 * it is `kept`.
 */
export interface Line {
  /** The words before the one under the cursor. */
  readonly words: readonly string[];
  /** The word under the cursor, up to it. */
  readonly current: string;
  /** How many characters of `current` the shell leaves alone; what it inserts goes behind them. */
  readonly kept: number;
  /** The quote that is still open. */
  readonly quote: Quote | undefined;
  /** What is being typed is where the output goes to, or the input comes from. */
  readonly isRedirection: boolean;
}

export type Quote = "'" | '"';

export interface LineRules {
  /** What a backslash means something before, inside each quote. */
  readonly escapable: Readonly<Record<Quote, string>>;
  /** Where a new word begins for the one who inserts. */
  readonly breaks: string;
}

export const bashEscapable: LineRules["escapable"] = { "'": "", '"': '"\\$`\n' };
export const fishEscapable: LineRules["escapable"] = { "'": "'\\", '"': '"\\$\n' };

const redirections = "<>&";
/** readline keeps these with what follows them. */
const belongsToNext = "@$";

/** The words of a line that ends at the cursor. */
export function readLine(text: string, { escapable, breaks }: LineRules): Line {
  const words: string[] = [];
  let current = "";
  let isInWord = false;
  let behindBreak = 0;
  let behindQuote = 0;
  let quote: Quote | undefined;
  let isRedirection = false;
  const add = (part: string) => {
    current += part;
    isInWord = true;
  };
  const endWord = () => {
    if (isInWord && !isRedirection) words.push(current);
    if (isInWord) isRedirection = false;
    current = "";
    isInWord = false;
    behindBreak = 0;
  };
  for (let at = 0; at < text.length; at++) {
    const letter = text.charAt(at);
    const next = text.charAt(at + 1);
    if (quote !== undefined) {
      if (letter === quote) quote = undefined;
      else if (letter === "\\" && next !== "" && escapable[quote].includes(next)) add(text.charAt(++at));
      else add(letter);
    } else if (letter === "\\") add(text.charAt(++at));
    else if (letter === "'" || letter === '"') {
      quote = letter;
      add("");
      behindQuote = current.length;
    } else if (/\s/.test(letter)) endWord();
    else if (redirections.includes(letter)) {
      if (/^\d*$/.test(current)) isInWord = false;
      endWord();
      isRedirection = true;
    } else {
      add(letter);
      if (breaks.includes(letter)) behindBreak = current.length - (belongsToNext.includes(letter) ? 1 : 0);
    }
  }
  return { words, current, kept: quote === undefined ? behindBreak : behindQuote, quote, isRedirection };
}
