import dns from "node:dns";
import http from "node:http";
import net from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { checkAddress, checkUrlHost, guardedLookup } from "../../../src/diagnose/wire/addresses.ts";
import { sendHttp } from "../../../src/diagnose/wire/probe-http.ts";
import { kindOf } from "../../../src/wire/address-kinds.ts";

const strict = { allowsPrivate: false, allowsLoopback: false };
const typed = { allowsPrivate: false, allowsLoopback: true };

describe("an address is known for what it is, however it is written", () => {
  test.each([
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "0:0:0:0:0:0:0:1",
    "[::1]",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "0:0:0:0:0:ffff:127.0.0.1",
  ])("%s is this machine", (address) => expect(kindOf(address)).toBe("loopback"));

  test.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.168.0.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "nonsense",
  ])("%s is not public", (address) => expect(kindOf(address)).toBe("private"));

  test.each(["1.1.1.1", "8.8.8.8", "172.32.0.1", "::ffff:8.8.8.8", "2606:4700::1111", "2001:4860:4860::8888"])(
    "%s is public",
    (address) => expect(kindOf(address)).toBe("public"),
  );
});

describe("a URL that leads inside is refused before anything is sent", () => {
  test.each([
    "http://169.254.169.254/latest/meta-data",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[fd00:ec2::254]/",
    "http://0/",
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://①⑥⑨.254.169.254/",
  ])("%s", (url) => {
    const connect = vi.spyOn(net.Socket.prototype, "connect");
    onTestFinished(() => connect.mockRestore());
    expect(() => sendHttp(new URL(url), { timeoutMs: 1_000 }, typed)).toThrow(
      /no public address, and those are refused/,
    );
    expect(connect).not.toHaveBeenCalled();
  });

  test.each([
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://127.1/",
    "http://[::1]/",
    "http://127.0.0.1./",
  ])("%s, where this machine was not typed by a person", (url) => {
    expect(() => checkUrlHost(new URL(url), strict)).toThrow(/is this machine itself/);
    expect(() => checkUrlHost(new URL(url), typed)).not.toThrow();
  });

  test("with private addresses allowed everything goes", () => {
    for (const address of ["127.0.0.1", "10.0.0.1", "169.254.169.254", "fe80::1"])
      expect(() => checkAddress("host", address, { allowsPrivate: true, allowsLoopback: true })).not.toThrow();
  });
});

describe("a name is judged by what it leads to", () => {
  test("localhost is this machine, and no connection is made to it", async () => {
    let connections = 0;
    const server = http.createServer((_request, response) => response.end("{}")).on("connection", () => connections++);
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    onTestFinished(() => void server.close());
    const url = new URL(`http://localhost:${(server.address() as net.AddressInfo).port}/`);
    const refused = await sendHttp(url, { timeoutMs: 2_000 }, strict);
    expect(refused).toMatchObject({
      status: 0,
      ended: "refused",
      error: expect.stringContaining("localhost is this machine itself"),
    });
    expect(connections).toBe(0);
    expect((await sendHttp(url, { timeoutMs: 2_000 }, typed)).status).toBe(200);
    expect(connections).toBe(1);
  });

  /** What a hostile name server could answer. */
  const resolving = (...found: string[]) => {
    const addresses = found.map((address) => ({ address, family: net.isIPv6(address) ? 6 : 4 }));
    const lookup = vi
      .spyOn(dns, "lookup")
      .mockImplementation(((_host: string, _options: object, callback: (error: null, found: object[]) => void) =>
        callback(null, addresses)) as never);
    onTestFinished(() => lookup.mockRestore());
  };
  const look = (all: boolean) =>
    new Promise<unknown>((resolve) =>
      guardedLookup(typed)("name.example", { all }, (error, address) =>
        resolve(error === null ? address : error.message),
      ),
    );

  test("one private address among public ones is enough to refuse it", async () => {
    resolving("93.184.215.14", "10.0.0.1");
    expect(await look(true)).toMatch(/name\.example leads to 10\.0\.0\.1/);
    expect(await look(false)).toMatch(/name\.example leads to 10\.0\.0\.1/);
  });

  test("the addresses that were judged are those that are used", async () => {
    resolving("93.184.215.14", "2606:4700::1111");
    expect(await look(false)).toBe("93.184.215.14");
    expect(await look(true)).toEqual([
      { address: "93.184.215.14", family: 4 },
      { address: "2606:4700::1111", family: 6 },
    ]);
  });

  test("a name that leads to the cloud's metadata is refused in the exchange itself", async () => {
    resolving("169.254.169.254");
    const answer = await sendHttp(new URL("http://rebound.example/"), { timeoutMs: 2_000 }, typed);
    expect(answer).toMatchObject({
      ended: "refused",
      error: expect.stringContaining("rebound.example leads to 169.254.169.254"),
    });
  });
});
