import { CommandError } from "meanwhile";
import { getDocumentProxy } from "unpdf";
import type { EngineInput, Transformed } from "./_engines.ts";

/** More pages than any book has; a file that claims more is not read to its end. */
const maxPages = 10_000;

/** The text of a PDF, page by page, so that a cancel is noticed between two of them. */
export async function fromPdf({ bytes, signal }: EngineInput): Promise<Transformed> {
  // The library takes the bytes for its own, so it gets a copy; `verbosity: 0` keeps it from printing.
  const document = await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 }).catch((error: Error) => {
    if (error.name === "PasswordException") throw new CommandError("it is locked with a password");
    throw error;
  });
  try {
    const pages: string[] = [];
    for (let number = 1; number <= Math.min(document.numPages, maxPages); number++) {
      signal?.throwIfAborted();
      const page = await document.getPage(number);
      const { items } = await page.getTextContent();
      pages.push(
        items
          .map((item) => ("str" in item ? `${item.str}${item.hasEOL ? "\n" : ""}` : ""))
          .join("")
          .trim(),
      );
      page.cleanup();
    }
    const { info } = await document.getMetadata();
    const title = (info as { Title?: unknown }).Title;
    return {
      text: `${pages.filter((page) => page !== "").join("\n\n")}\n`,
      title: typeof title === "string" ? title.trim() : "",
      facts: { pages: document.numPages, pages_with_text: pages.filter((page) => page !== "").length },
    };
  } finally {
    await document.loadingTask.destroy();
  }
}
