import type { Branch } from "./schema-branches.ts";

/** Every number that is left when all of a branch's limits hold. */
interface NumberRange {
  readonly min: number;
  readonly max: number;
  /** The distance between neighbours; 0 when there is none. */
  readonly step: number;
}

export interface Numbers {
  readonly values: readonly number[];
  readonly isAll: boolean;
}

/** So many values are listed whole; of more, only some. */
export const few = 50;
const SAMPLES = 12;
const MAX_TYPED_TRIES = 3000;

/**
 * The numbers to offer: all when there are few, otherwise round ones from end to end; open ends begin at the end there
 * is. With something typed, the numbers that continue it. Some may be off the limits: the caller checks each against
 * the schema.
 */
export function numbersOf(branch: Branch, isInteger: boolean, partial: string): Numbers {
  const range = rangeOf(branch, isInteger);
  const isOpenBelow = range.min === Number.NEGATIVE_INFINITY;
  const isOpenAbove = range.max === Number.POSITIVE_INFINITY;
  const isOpen = isOpenBelow || isOpenAbove;
  if (isOpenBelow && isOpenAbove && range.step <= 1) return { values: [], isAll: false };
  if (range.step > 0 && !isOpen) {
    const first = Math.ceil(range.min / range.step);
    const count = Math.floor(range.max / range.step) - first + 1;
    if (count <= few)
      return {
        values: Array.from({ length: Math.max(count, 0) }, (_, at) => multiple(first + at, range.step)),
        isAll: true,
      };
  }
  const samples = isOpen ? fromOneEnd(range) : fromEndToEnd(range);
  return { values: partial === "" ? samples : [...continued(partial, range), ...samples], isAll: false };
}

function rangeOf(branch: Branch, isInteger: boolean): NumberRange {
  const given = (keyword: string) =>
    branch.map((schema) => schema[keyword]).filter((value) => typeof value === "number");
  // Libraries write "any integer" as a range of all the safe ones; nobody wants those ends.
  const isLimit = (value: number) => Math.abs(value) < Number.MAX_SAFE_INTEGER;
  const min = Math.max(
    ...[...given("minimum"), ...given("exclusiveMinimum")].filter(isLimit),
    Number.NEGATIVE_INFINITY,
  );
  const max = Math.min(
    ...[...given("maximum"), ...given("exclusiveMaximum")].filter(isLimit),
    Number.POSITIVE_INFINITY,
  );
  const step = Math.max(...given("multipleOf").filter((value) => value > 0), 0);
  return { min, max, step: isInteger && !Number.isInteger(step) ? 1 : isInteger ? Math.max(step, 1) : step };
}

/** 1, 2, 5 and 10 steps and so on, from the end that there is, or from zero. */
function fromOneEnd({ min, max, step: given }: NumberRange): number[] {
  const step = given || 1;
  const isUp = max === Number.POSITIVE_INFINITY;
  const start = isUp ? (min === Number.NEGATIVE_INFINITY ? 0 : Math.ceil(min / step)) : Math.floor(max / step);
  const samples = [0, 1, 2, 5, 10, 20, 50, 100].map((distance) =>
    multiple(isUp ? start + distance : start - distance, step),
  );
  // Limits that hold no multiple near them, and ends left out, fall away when checked.
  return given === 0 && Number.isFinite(isUp ? min : max) ? [isUp ? min : max, ...samples] : samples;
}

function fromEndToEnd({ min, max, step: given }: NumberRange): number[] {
  const span = max - min;
  if (span < 0) return [];
  if (span === 0 || !Number.isFinite(span)) return [min, 0, max];
  // Decimals need one more round, so that ends which are left out still have something between them.
  const step =
    given === 0 ? roundStep(span / (SAMPLES - 2)) : given * Math.max(roundStep(span / given / (SAMPLES - 2)), 1);
  const samples = given === 0 ? [min] : [multiple(Math.ceil(min / given), given)];
  for (let index = Math.ceil(min / step); index * step <= max && samples.length < 3 * SAMPLES; index++)
    samples.push(multiple(index, step));
  samples.push(given === 0 ? max : multiple(Math.floor(max / given), given));
  return samples;
}

/** The smallest of 1, 2, 5 × a power of ten that is not below `size`. */
function roundStep(size: number): number {
  const power = 10 ** Math.floor(Math.log10(size));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= size * (1 - 1e-9)) ?? 10;
  return multiple(factor, power);
}

/** index × step without the dust of binary fractions: 3 × 0.1 is 0.3. */
function multiple(index: number, step: number): number {
  const product = index * step;
  return Number.isSafeInteger(product) ? product : Number(product.toPrecision(12));
}

/** Numbers whose digits begin with what was typed, the shortest first. */
function continued(partial: string, range: NumberRange): number[] {
  if (!/^-?(\d+(\.\d*)?)?$/.test(partial) || partial.length > 15) return [];
  const found: number[] = [];
  const isWhole = Number.isInteger(range.step) && range.step > 0;
  let tried = 0;
  for (let texts = [partial]; texts.length > 0 && found.length < SAMPLES; ) {
    const longer: string[] = [];
    for (const text of texts) {
      if (++tried > MAX_TYPED_TRIES) return found.slice(0, SAMPLES);
      const value = Number(text);
      const isCanonical = text !== "" && String(value) === text;
      const isOnStep = range.step === 0 || Number.isInteger(value / range.step);
      if (isCanonical && isOnStep && value >= range.min && value <= range.max) found.push(value);
      if (/^-?0\d/.test(text)) continue;
      // More digits only lead away from zero: past the limit, nothing that follows can come back.
      if (isCanonical && !text.includes(".") && (value > Math.max(range.max, 0) || value < Math.min(range.min, 0)))
        continue;
      if (text.length < partial.length + 6) for (let digit = 0; digit <= 9; digit++) longer.push(text + digit);
      if (!isWhole && /\d$/.test(text) && !text.includes(".") && text === partial) longer.push(`${text}.`);
    }
    texts = longer;
  }
  return found.slice(0, SAMPLES);
}
