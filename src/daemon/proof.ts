/**
 * Where others see who listens, and may take a name that has become free, each side shows the other that it has read
 * the daemon's record: the caller in its greeting, the daemon before it says anything, by a keyed hash of what the
 * caller has made up for this once. Nothing of a session is sent before both have; a greeting names the folder.
 */
export interface Proof {
  readonly nonce: string;
  readonly proof: string;
}

type Side = "caller" | "daemon";

/** What a caller adds to its greeting. */
export function showSecret(secret: string): Proof {
  const nonce = crypto().randomBytes(16).toString("base64url");
  return { nonce, proof: prove(secret, "caller", nonce) };
}

/** The proof of one side about a nonce. */
export function prove(secret: string, side: Side, nonce: string): string {
  return crypto().createHmac("sha256", secret).update(`${side} ${nonce}`).digest("base64url");
}

/** True when the other side knows the secret too. */
export function isProved(secret: string, side: Side, { nonce, proof }: Partial<Proof>): boolean {
  if (typeof nonce !== "string" || typeof proof !== "string") return false;
  const [own, theirs] = [prove(secret, side, nonce), proof].map((text) => Buffer.from(text));
  return own?.length === theirs?.length && crypto().timingSafeEqual(own as Buffer, theirs as Buffer);
}

// Loading it takes long, and most systems need none of this.
const crypto = () => process.getBuiltinModule("node:crypto");
