/** `npm run check:long`: the tests with all their rounds and cases. Every day a few do, the most telling ones. */
export const isLong = process.env.LONG_TESTS === "1";

/** So many times every day, and so many when there is time. */
export const rounds = (everyDay: number, long: number): number => (isLong ? long : everyDay);

/** All cases when there is time; every day those that are wanted, by their places. */
export function cases<T>(all: readonly T[], ...everyDay: readonly number[]): readonly T[] {
  return isLong ? all : all.filter((_, at) => everyDay.includes(at));
}
