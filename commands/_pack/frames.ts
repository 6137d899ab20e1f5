/** What goes between a command and the process that reads documents for it: a kind, a length, and so many bytes. */
export const Kind = { Begin: 1, Bytes: 2, End: 3, Drop: 4, Text: 5, Items: 6, Answer: 7 } as const;

export interface Frame {
  readonly kind: number;
  readonly payload: Buffer;
}

const headerBytes = 5;

/** A frame as it is sent: its header, and its payload where it has one. */
export function toFrame(kind: number, payload: Uint8Array | string = ""): Buffer[] {
  const body = typeof payload === "string" ? Buffer.from(payload) : payload;
  const header = Buffer.allocUnsafe(headerBytes);
  header.writeUInt8(kind, 0);
  header.writeUInt32LE(body.length, 1);
  return body.length === 0 ? [header] : [header, Buffer.from(body.buffer, body.byteOffset, body.length)];
}

/**
 * Puts together what arrives in pieces. A payload that is longer than allowed is an error, so that nobody can make the
 * other side hold it.
 */
export class FrameReader {
  readonly #maxBytes: number;
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The frames that are whole by now. */
  *take(piece: Buffer): Generator<Frame> {
    this.#held.push(piece);
    this.#heldBytes += piece.length;
    for (;;) {
      const header = this.#peek(headerBytes);
      if (header === undefined) return;
      const length = header.readUInt32LE(1);
      if (length > this.#maxBytes) throw new Error(`A frame of ${length} bytes is longer than ${this.#maxBytes}.`);
      if (this.#heldBytes < headerBytes + length) return;
      const whole = this.#cut(headerBytes + length);
      yield { kind: whole.readUInt8(0), payload: whole.subarray(headerBytes) };
    }
  }

  #peek(length: number): Buffer | undefined {
    if (this.#heldBytes < length) return undefined;
    if ((this.#held[0]?.length ?? 0) < length) this.#held = [Buffer.concat(this.#held)];
    return this.#held[0];
  }

  #cut(length: number): Buffer {
    const whole = this.#held.length === 1 ? (this.#held[0] as Buffer) : Buffer.concat(this.#held);
    this.#held = whole.length === length ? [] : [whole.subarray(length)];
    this.#heldBytes -= length;
    return whole.subarray(0, length);
  }
}
