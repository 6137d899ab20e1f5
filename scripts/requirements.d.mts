/** docs/protocol.md with its table of requirements written anew. Throws when the page has no place for it. */
export declare function withTable(text: string): string;
