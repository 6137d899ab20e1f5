/**
 * Why a document was not read: one sentence without the file's name and without a full stop. Whoever tells it adds
 * both.
 */
export class Unreadable extends Error {}

/** A document that is more than the settings allow; says which of them. */
export class BeyondLimit extends Unreadable {
  constructor(what: string, setting: LimitName) {
    super(`${what}; the setting pack.${setting} allows more`);
  }
}

/** The settings below `pack` that bound what one document may take. */
export interface Limits {
  /** Megabytes that the process which reads it may hold. */
  readonly memoryMb: number;
  readonly documentSeconds: number;
  /** How many of one kind of part it may have: entries of a zip, columns, links of a note. */
  readonly documentParts: number;
  /** Megabytes that are unpacked from it, all parts together. */
  readonly unpackedMb: number;
  /** Megabytes of text that may come of it. */
  readonly textMb: number;
}

type LimitName = keyof Limits;

export const defaultLimits: Limits = {
  memoryMb: 192,
  documentSeconds: 60,
  documentParts: 10_000,
  unpackedMb: 32,
  textMb: 32,
};

/** The limits in force, from a command's settings. */
export function limitsOf(config: Readonly<Record<string, unknown>>): Limits {
  const { memoryMb, documentSeconds, documentParts, unpackedMb, textMb } = {
    ...defaultLimits,
    ...(config.pack as Partial<Limits> | undefined),
  };
  return { memoryMb, documentSeconds, documentParts, unpackedMb, textMb };
}

export const bytesOf = (megabytes: number) => megabytes * 1024 * 1024;
