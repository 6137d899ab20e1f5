/** Those who wait since this turn of the event loop began, and since the one before it. */
let young: (() => void)[] = [];
let older: (() => void)[] = [];
let isTurning = false;

/** Calls back when the event loop has come round twice. What is called must not throw. */
export function inTwoTurns(callback: () => void): void {
  young.push(callback);
  if (!isTurning) setImmediate(onTurn);
  isTurning = true;
}

function onTurn(): void {
  const due = older;
  older = young;
  young = [];
  isTurning = older.length > 0;
  if (isTurning) setImmediate(onTurn);
  for (const callback of due) callback();
}
