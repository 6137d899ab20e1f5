import { getDocumentProxy } from "unpdf";
import { BeyondLimit, bytesOf, Unreadable } from "../_pack/limits.ts";
import type { EngineInput, Transformed } from "./_engines.ts";

/** The text of a PDF, page by page. */
export async function fromPdf({ bytes, limits }: EngineInput): Promise<Transformed> {
  // The library takes the memory for its own: what shares it with others is copied. `verbosity: 0` keeps it from
  // printing.
  const isShared = bytes.byteLength < bytes.buffer.byteLength;
  const document = await getDocumentProxy(isShared ? new Uint8Array(bytes) : new Uint8Array(bytes.buffer), {
    verbosity: 0,
  }).catch((error: Error) => {
    if (error.name === "PasswordException") throw new Unreadable("it is locked with a password");
    throw error;
  });
  try {
    if (document.numPages > limits.documentParts)
      throw new BeyondLimit(`it has more than ${limits.documentParts} pages`, "documentParts");
    const pages: string[] = [];
    let characters = 0;
    for (let number = 1; number <= document.numPages; number++) {
      const page = await document.getPage(number);
      const { items } = await page.getTextContent();
      pages.push(
        items
          .map((item) => ("str" in item ? `${item.str}${item.hasEOL ? "\n" : ""}` : ""))
          .join("")
          .trim(),
      );
      page.cleanup();
      characters += pages.at(-1)?.length ?? 0;
      if (characters > bytesOf(limits.textMb))
        throw new BeyondLimit(`its text has more than ${limits.textMb} MB`, "textMb");
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
