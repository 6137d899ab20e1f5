import { BeyondLimit, bytesOf, type Limits, Unreadable } from "../../commands/_pack/limits.ts";
import { readBytes } from "../../commands/_pack/read-bytes.ts";
import type { Answer, Document } from "../../commands/_pack/reader-process.ts";
import { replaceReaderProcess } from "../../commands/_pack/readers.ts";

/**
 * Makes the bundled commands read documents in the test's process. The bounds of time and memory belong to the reader
 * process: test/system/bombs.test.ts shows them.
 */
export function readDocumentsHere(): void {
  replaceReaderProcess((memoryMb) => ({ memoryMb, isUsable: true, read, close: async () => {} }));
}

async function read<Head, Item>(
  { domain, how, pieces }: Document,
  limits: Limits,
  signal: AbortSignal,
): Promise<Answer<Head, Item>> {
  const bytes: Buffer[] = [];
  for await (const piece of pieces()) bytes.push(Buffer.from(piece));
  signal.throwIfAborted();
  try {
    const { head, text = "", items = [] } = await readBytes(domain, Buffer.concat(bytes), how as never, limits);
    // The reader process sends JSON.
    const copy = JSON.stringify({ head, items });
    if (Buffer.byteLength(text) + copy.length > bytesOf(limits.textMb))
      throw new BeyondLimit(`its text has more than ${limits.textMb} MB`, "textMb");
    return { text, ...(JSON.parse(copy) as { head: Head; items: Item[] }) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw error instanceof Unreadable ? new Unreadable(reason) : new Error(reason);
  }
}
