// What every program of this bench does: it says that it is ready, begins when it is told to, says when all is done,
// and ends when it is told to.
import process from "node:process";

export const [role, url, countText, widthText] = process.argv.slice(2);
export const count = Number(countText);
export const width = Number(widthText);

export function say(word) {
  process.send(word);
}

export function told(word) {
  return new Promise((resolve) => process.on("message", (message) => message[word] && resolve()));
}

/** So many at a time, until all are done. */
export async function eachOf(act) {
  let left = count;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (left > 0) await act(left--);
    }),
  );
}
