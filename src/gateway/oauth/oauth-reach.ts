import dns from "node:dns";
import net from "node:net";
import { type AddressKind, checkedLookup, isLoopbackHost, kindOf } from "../../wire/address-kinds.ts";
import { quoteWords, SignInError } from "./sign-in-error.ts";

/**
 * Where an upstream's metadata may send us. A person has typed the upstream's address, but its metadata is the
 * upstream's own words: they must not lead to services of this machine, or of a private network, that the upstream
 * itself could not reach. So: never nearer than the upstream is, always by https, and by http only on this machine.
 */
export interface OAuthReach {
  /** The upstream, as sentences call it. */
  readonly name: string;
  /** A URL that `said` what: parsed, and one that may be asked. Throws a SignInError. */
  parse(url: string, what: string): URL;
  readonly lookup: net.LookupFunction;
}

const nearness: Record<AddressKind, number> = { public: 0, private: 1, loopback: 2 };

const toBareHost = (hostname: string) => hostname.replace(/^\[|\]$/g, "");

export async function openReach(name: string, upstream: URL): Promise<OAuthReach> {
  const own = await kindOfHost(upstream.hostname);
  const tooNear = (host: string) =>
    new SignInError(
      `${name} names ${quoteWords(host)} to sign in with, which leads into a private network or to this machine, and ${name} itself is not there; nothing was sent.`,
    );
  const check = (host: string, address: string) => {
    const isOwnHost = host.toLowerCase() === upstream.hostname;
    if (!isOwnHost && nearness[kindOf(address)] > nearness[own]) throw tooNear(host);
  };
  return {
    name,
    parse(text, what) {
      const url = URL.parse(text);
      const refuse = (why: string) => new SignInError(`${name} names ${quoteWords(text)} as ${what}, ${why}.`);
      if (url === null) throw refuse("which is no URL");
      if (url.username !== "" || url.password !== "") throw refuse("with a password in it, and those are refused");
      const host = toBareHost(url.hostname);
      const isPlain = url.protocol === "http:" && isLoopbackHost(host);
      if (url.protocol !== "https:" && !isPlain) throw refuse("and only https is spoken there");
      if (net.isIP(host) !== 0) check(host, host);
      else if (isLoopbackHost(host) && own !== "loopback") throw tooNear(host);
      return url;
    },
    lookup: checkedLookup(check),
  };
}

/** A name counts as private only when all its addresses are, and never as this machine. */
async function kindOfHost(hostname: string): Promise<AddressKind> {
  if (isLoopbackHost(hostname)) return "loopback";
  const host = toBareHost(hostname);
  if (net.isIP(host) !== 0) return kindOf(host);
  const found = await dns.promises.lookup(host, { all: true }).catch(() => []);
  return found.length > 0 && found.every(({ address }) => kindOf(address) !== "public") ? "private" : "public";
}
