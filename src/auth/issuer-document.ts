import { messageOf } from "../errors.ts";
import { readBody, sendHttp, TooLarge } from "../wire/http-client.ts";
import { isObject, type Json, parseWeighed } from "../wire/json.ts";

/** A document of an issuer could not be read. The message is for the log. */
export class IssuerDocumentError extends Error {
  override name = "IssuerDocumentError";
  /** True where the issuer answered that it has no such document. */
  readonly isMissing: boolean;

  constructor(message: string, { isMissing = false, cause }: { isMissing?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.isMissing = isMissing;
  }
}

const maxBytes = 256 * 1024;
const maxHeaderBytes = 16 * 1024;
const limits = { depth: 16, values: 10_000 } as const;

/** Reads a JSON object of at most 256 kB. Follows no redirect. Throws an IssuerDocumentError. */
export async function readIssuerDocument(url: URL, signal: AbortSignal): Promise<Json> {
  const fail = (why: string, facts?: { isMissing?: boolean; cause?: unknown }) =>
    new IssuerDocumentError(`${url.href} ${why}.`, facts);
  let text = "";
  try {
    const response = await sendHttp(url, {
      method: "GET",
      headers: { accept: "application/json" },
      maxHeaderSize: maxHeaderBytes,
      signal,
    });
    const status = response.statusCode ?? 0;
    if (status !== 200) {
      response.destroy();
      if (status >= 300 && status < 400) throw fail(`answered with a redirect (${status}), which is not followed`);
      throw fail(`answered ${status}`, { isMissing: status >= 400 && status < 500 && status !== 429 });
    }
    for await (const { data } of readBody(response, false, maxBytes)) text = data;
  } catch (cause) {
    if (cause instanceof IssuerDocumentError) throw cause;
    if (signal.aborted) throw fail("did not answer in time", { cause });
    if (cause instanceof TooLarge) throw fail(`is larger than ${maxBytes / 1024} kB`, { cause });
    throw fail(`cannot be reached: ${messageOf(cause)}`, { cause });
  }
  const value = parseWeighed(text, limits)?.value;
  if (!isObject(value)) throw fail("is not a JSON object", { isMissing: true });
  return value;
}
