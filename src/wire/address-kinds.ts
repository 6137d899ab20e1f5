import dns from "node:dns";
import net from "node:net";

/** Where an address leads: to this machine, into a network that is not everybody's, or out. */
export type AddressKind = "loopback" | "private" | "public";

const loopback = new net.BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

const reserved = new net.BlockList();
for (const [prefix, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  reserved.addSubnet(prefix, bits, "ipv4");
// Within the public part of IPv6: tunnels and translations that lead elsewhere, and what stands in documents.
for (const [prefix, bits] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  reserved.addSubnet(prefix, bits, "ipv6");

/**
 * All that was ever given out; the rest of IPv6 (unique local, link-local, translated IPv4, multicast, …) is not
 * public.
 */
const publicIpv6 = new net.BlockList();
publicIpv6.addSubnet("2000::", 3, "ipv6");

/** What kind of address it is; what cannot be read is not public. */
export function kindOf(address: string): AddressKind {
  const bare = toBare(address);
  if (net.isIPv4(bare)) {
    if (loopback.check(bare, "ipv4")) return "loopback";
    return reserved.check(bare, "ipv4") ? "private" : "public";
  }
  if (!net.isIPv6(bare)) return "private";
  if (loopback.check(bare, "ipv6")) return "loopback";
  return publicIpv6.check(bare, "ipv6") && !reserved.check(bare, "ipv6") ? "public" : "private";
}

/** True for the host of a URL that is this machine by its name or address. What DNS says of other names does not count. */
export function isLoopbackHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "");
  return net.isIP(host) === 0 ? /^(?:.+\.)?localhost\.?$/i.test(host) : kindOf(host) === "loopback";
}

/** IPv4 written as IPv6 is IPv4; a zone says nothing about the kind of address. */
export function toBare(address: string): string {
  const plain = address.replace(/^\[|\]$/g, "").replace(/%.*$/, "");
  if (!net.isIPv6(plain)) return plain;
  // A URL writes every address in its one shortest form, without dots.
  const bare = new URL(`http://[${plain}]/`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(bare);
  if (mapped === null) return bare;
  const [high = 0, low = 0] = [mapped[1], mapped[2]].map((part) => Number.parseInt(part as string, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/**
 * A `lookup` for sockets that connects to nothing that `check` throws for: what is checked is what is connected to, so a
 * name cannot change its mind.
 */
export function checkedLookup(check: (host: string, address: string) => void): net.LookupFunction {
  return (hostname, options, callback) => {
    dns.lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, "", 0);
      try {
        for (const { address } of found) check(hostname, address);
      } catch (refusal) {
        return callback(refusal as NodeJS.ErrnoException, "", 0);
      }
      const [first] = found;
      if (options.all === true) callback(null, found as never);
      else callback(null, first?.address ?? "", first?.family ?? 4);
    });
  };
}
