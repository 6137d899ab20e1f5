import { type FileState, type HashedFile, hashFile } from "./hash-file.ts";
import { reasonOf } from "./reason.ts";

/** Files to hash, in as few values as can be: between threads, each value of a message has its price. */
export interface HashBatch {
  /** One character a byte (latin1), NUL between them. */
  readonly paths: string;
  /** Size, time and inode of each, as last seen. */
  readonly states: BigInt64Array<ArrayBuffer>;
}

export interface HashedBatch {
  readonly digests: Uint8Array<ArrayBuffer>;
  /** As they were when the files were read. */
  readonly states: BigInt64Array<ArrayBuffer>;
  /** Places of files that were no longer as last seen. */
  readonly changed: readonly number[];
  /** Place and reason of each file that could not be read. */
  readonly failures: readonly (readonly [number, string])[];
}

/** The hash with the state it belongs to, or why there is none. */
export type HashResult = HashedFile | { readonly reason: string };

/**
 * Hashes all files of a batch; one that fails does not stop the others. Blocks until it is done; throws when it is
 * stopped.
 */
export function hashBatch({ paths, states }: HashBatch, isStopped: () => boolean = () => false): HashedBatch {
  const names = paths.split("\0");
  const digests = new Uint8Array(32 * names.length);
  const changed: number[] = [];
  const failures: [number, string][] = [];
  for (const [at, path] of names.entries()) {
    if (isStopped()) throw new Error("The run was stopped.");
    try {
      const hashed = hashFile(Buffer.from(path, "latin1"), stateAt(states, at), isStopped);
      digests.set(hashed.sha256, 32 * at);
      putState(states, at, hashed);
      if (hashed.hasChanged) changed.push(at);
    } catch (error) {
      failures.push([at, reasonOf(error)]);
    }
  }
  return { digests, states, changed, failures };
}

/** How each file fared, in the order of the batch. */
export function* resultsOf({ digests, states, changed, failures }: HashedBatch): Generator<HashResult> {
  const reasons = new Map(failures);
  for (let at = 0; at < states.length / 3; at++) {
    const reason = reasons.get(at);
    yield reason === undefined
      ? { sha256: Buffer.from(digests.buffer, 32 * at, 32), ...stateAt(states, at), hasChanged: changed.includes(at) }
      : { reason };
  }
}

function stateAt(states: BigInt64Array, at: number): FileState {
  return {
    size: Number(states[3 * at] ?? 0n),
    mtimeNs: states[3 * at + 1] ?? 0n,
    inode: BigInt.asUintN(64, states[3 * at + 2] ?? 0n),
  };
}

function putState(states: BigInt64Array, at: number, { size, mtimeNs, inode }: FileState): void {
  states[3 * at] = BigInt(size);
  states[3 * at + 1] = mtimeNs;
  states[3 * at + 2] = inode;
}
