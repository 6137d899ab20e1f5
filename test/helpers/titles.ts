interface Title {
  readonly text: string;
  /** One of several that begin alike. */
  readonly isOpen: boolean;
}

/** The titles of a file's tests, without those that are skipped, commented out or known to fail. */
export function titlesIn(text: string): Title[] {
  const single = text.matchAll(
    /^[ \t]*(?:test|onStore|onTwoStores)(?:\.concurrent|\.sequential)?\(\s*(["'`])((?:\\.|(?!\1).)*)\1/gms,
  );
  const several = text.matchAll(/^[ \t]*test\.(?:each|for)\b.*?\)\s*\(\s*(["'`])((?:\\.|(?!\1).)*)\1/gms);
  return [
    ...[...single].map(([, quote = "", title = ""]) => ({
      text: title,
      isOpen: quote === "`" && title.includes("${"),
    })),
    ...[...several].map(([, , title = ""]) => ({ text: title, isOpen: true })),
  ];
}

/** Whether a test has this title; of a `test.each`, whether its title begins so. */
export function isTitled({ text, isOpen }: Title, title: string): boolean {
  return text === title || (isOpen && text.startsWith(title) && !/^\w/.test(text.slice(title.length)));
}
