import { Unreadable } from "../_pack/limits.ts";

/**
 * Bytes as text: UTF-8, UTF-16 where a byte order mark says so, else Windows-1252. Line ends become `\n`. Refuses what
 * is not text.
 */
export function decodeText(bytes: Uint8Array): string {
  return decode(bytes).replaceAll(/\r\n?/g, "\n");
}

function decode(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  if (bytes.includes(0)) throw new Unreadable("it is binary, not text");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}
