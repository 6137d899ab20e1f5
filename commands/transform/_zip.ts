import { inflateRawSync } from "node:zlib";
import { BeyondLimit, bytesOf, type Limits, Unreadable } from "../_pack/limits.ts";

/** One file in an archive, as its table of contents has it. */
interface Entry {
  readonly name: string;
  readonly method: number;
  readonly isLocked: boolean;
  /** Where its packed bytes lie. */
  readonly from: number;
  readonly end: number;
}

const endMark = 0x06054b50;
const entryMark = 0x02014b50;
const localMark = 0x04034b50;
const endBytes = 22;
const entryBytes = 46;
const localBytes = 30;
const maxComment = 0xffff;
const Method = { Stored: 0, Deflated: 8 } as const;

/**
 * Unpacks the wanted files of a zip archive, and nothing else. Sizes that the archive claims are not believed: what is
 * unpacked is counted. An archive whose files share bytes or a name is refused, since a small one could then be
 * unpacked without end, or be one document to us and another to somebody else.
 */
export function unpack(bytes: Uint8Array, wanted: ReadonlySet<string>, limits: Limits): Map<string, Uint8Array> {
  const archive = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const entries = readEntries(archive, limits);
  refuseShared(entries);
  const unpacked = new Map<string, Uint8Array>();
  let room = bytesOf(limits.unpackedMb);
  for (const entry of entries) {
    if (!wanted.has(entry.name)) continue;
    const file = inflate(archive, entry, room, limits);
    room -= file.length;
    unpacked.set(entry.name, file);
  }
  return unpacked;
}

function readEntries(archive: Buffer, { documentParts }: Limits): Entry[] {
  const end = findEnd(archive);
  const count = archive.readUInt16LE(end + 10);
  if (count > documentParts) throw new BeyondLimit(`it has more than ${documentParts} files inside`, "documentParts");
  const entries: Entry[] = [];
  for (let at = archive.readUInt32LE(end + 16), left = count; left > 0; left--) {
    if (at + entryBytes > end || archive.readUInt32LE(at) !== entryMark) throw damaged();
    const nameEnd = at + entryBytes + archive.readUInt16LE(at + 28);
    if (nameEnd > end) throw damaged();
    entries.push({
      name: archive.toString("utf8", at + entryBytes, nameEnd),
      method: archive.readUInt16LE(at + 10),
      isLocked: (archive.readUInt16LE(at + 8) & 1) === 1,
      ...placeOf(archive, archive.readUInt32LE(at + 42), archive.readUInt32LE(at + 20)),
    });
    at = nameEnd + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return entries;
}

/** The record at the very end, with nothing behind it but its comment. */
function findEnd(archive: Buffer): number {
  for (let at = archive.length - endBytes; at >= Math.max(0, archive.length - endBytes - maxComment); at--)
    if (archive.readUInt32LE(at) === endMark && at + endBytes + archive.readUInt16LE(at + 20) === archive.length)
      return at;
  throw new Unreadable("it is no zip archive, as a Word document is, or it is damaged");
}

function placeOf(archive: Buffer, local: number, length: number): Pick<Entry, "from" | "end"> {
  if (local + localBytes > archive.length || archive.readUInt32LE(local) !== localMark) throw damaged();
  const from = local + localBytes + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
  if (from + length > archive.length) throw damaged();
  return { from, end: from + length };
}

function refuseShared(entries: readonly Entry[]): void {
  if (new Set(entries.map(({ name }) => name)).size < entries.length)
    throw new Unreadable("two of the files inside have the same name");
  let end = 0;
  for (const entry of [...entries].sort((a, b) => a.from - b.from)) {
    if (entry.from - localBytes < end) throw new Unreadable("files inside share the same bytes");
    end = entry.end;
  }
}

function inflate(
  archive: Buffer,
  { name, method, isLocked, from, end }: Entry,
  room: number,
  { unpackedMb }: Limits,
): Uint8Array {
  if (isLocked) throw new Unreadable("it is locked with a password");
  const packed = archive.subarray(from, end);
  const tooMuch = new BeyondLimit(`it unpacks to more than ${unpackedMb} MB`, "unpackedMb");
  if (method === Method.Stored) {
    if (packed.length > room) throw tooMuch;
    return packed;
  }
  if (method !== Method.Deflated) throw new Unreadable(`its part ${name} is packed in a way that is not known here`);
  if (room === 0) throw tooMuch;
  try {
    return inflateRawSync(packed, { maxOutputLength: room });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? tooMuch : error;
  }
}

const damaged = () => new Unreadable("its table of contents is damaged");
