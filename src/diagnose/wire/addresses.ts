import dns from "node:dns";
import net from "node:net";
import { CommandError } from "../../errors.ts";
import { checkedLookup, kindOf, toBare } from "../../wire/address-kinds.ts";

/**
 * Which addresses may be spoken to. What is not public is refused, because a name, a redirect or a model may lead
 * there.
 */
export interface AddressPolicy {
  /** Everything, private networks and link-local services included. */
  readonly allowsPrivate: boolean;
  /** This machine itself. */
  readonly allowsLoopback: boolean;
}

/** An address that may not be spoken to. */
export class AddressRefused extends CommandError {
  override readonly name = "AddressRefused";
}

/** Throws for an address outside the policy. */
export function checkAddress(host: string, address: string, policy: AddressPolicy): void {
  if (policy.allowsPrivate) return;
  const kind = kindOf(address);
  if (kind === "public" || (kind === "loopback" && policy.allowsLoopback)) return;
  const bare = toBare(address);
  if (kind === "loopback")
    throw new AddressRefused(
      `${host} is this machine itself (${bare}), and private addresses are refused; allow it if you mean it (--allow-private).`,
    );
  throw new AddressRefused(
    `${host} leads to ${bare}, which is no public address, and those are refused; allow it if you mean it (--allow-private).`,
  );
}

/** A `lookup` for sockets that connects to nothing outside the policy. */
export function guardedLookup(policy: AddressPolicy): net.LookupFunction {
  return checkedLookup((host, address) => checkAddress(host, address, policy));
}

/** Checks an address that stands in a URL as it is; names are checked when they are looked up. */
export function checkUrlHost(url: URL, policy: AddressPolicy): void {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (net.isIP(host) !== 0) checkAddress(url.host, host, policy);
}

/**
 * The same for a name too, before anything is sent; one that cannot be looked up is found out about by whoever
 * connects.
 */
export async function checkReach(url: URL, policy: AddressPolicy): Promise<void> {
  checkUrlHost(url, policy);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (net.isIP(host) !== 0) return;
  const found = await dns.promises.lookup(host, { all: true }).catch(() => []);
  for (const { address } of found) checkAddress(url.host, address, policy);
}
