import { describe, expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { answer, discovered, modern, type Received, refuse, serveLoopback, text } from "../loopback.ts";

const secret = "s3cret-and-long-enough";

function setVariable(name: string, value: string): string {
  process.env[name] = value;
  onTestFinished(() => void delete process.env[name]);
  return name;
}

async function callOnce(url: string, tokenVariable?: string) {
  const client = await connect({ url, ...(tokenVariable !== undefined && { tokenVariable }) }, { retryMs: 0 });
  onTestFinished(() => client.close());
  return await client.callTool("echo", { text: "hi" });
}

const sentence = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail("it should have been refused"),
    (error: Error) => error.message,
  );

describe("redirects", () => {
  test.each([307, 308])("on the same origin are followed (%i), with the body and the token", async (status) => {
    const seen: (string | undefined)[] = [];
    const echo = (received: Received) => {
      seen.push(received.request.headers.authorization);
      answer(received, text(received.message.params?.arguments.text));
    };
    const { url } = await serveLoopback(async (received) => {
      if (received.request.url === "/real") await modern({ "tools/call": echo })(received);
      else received.response.writeHead(status, { location: "/real" }).end();
    });
    expect(await callOnce(url, setVariable("CLIENT_TEST_TOKEN", secret))).toMatchObject({ content: [{ text: "hi" }] });
    expect(seen).toEqual([`Bearer ${secret}`]);
  });

  test("to another origin are refused before anything is sent there", async () => {
    let strangers = 0;
    const other = await serveLoopback(({ response }) => {
      strangers += 1;
      response.end();
    });
    const { url } = await serveLoopback(({ response }) => void response.writeHead(307, { location: other.url }).end());
    const message = await sentence(callOnce(url, setVariable("CLIENT_TEST_TOKEN", secret)));
    expect(message).toContain(`redirects to another origin, ${other.origin}`);
    expect(message).not.toContain(secret);
    expect(strangers).toBe(0);
  });

  test("to another origin are refused in the middle of a conversation, too", async () => {
    const strangers: string[] = [];
    const other = await serveLoopback(({ response, request }) => {
      strangers.push(request.url ?? "");
      response.end();
    });
    const { url } = await serveLoopback(
      modern({ "tools/call": ({ response }) => void response.writeHead(308, { location: other.url }).end() }),
    );
    expect(await sentence(callOnce(url))).toContain("another origin");
    expect(strangers).toEqual([]);
  });

  test.each(["file:///etc/passwd", "data:text/plain,x"])(
    "to %s are refused by name, and no address is suggested",
    async (location) => {
      const { url, origin } = await serveLoopback(({ response }) => void response.writeHead(307, { location }).end());
      const scheme = location.replace(/:.*/, ":");
      expect(await sentence(callOnce(url))).toContain(
        `${origin} redirects to a ${scheme} address, and that is never followed.`,
      );
    },
  );

  test.each(["//evil.example/", "http://"])("to %s lead nowhere", async (location) => {
    const { url } = await serveLoopback(({ response }) => void response.writeHead(307, { location }).end());
    expect(await sentence(callOnce(url))).toMatch(/another origin|no address/);
  });

  test("that would lose the request are refused with the address to use", async () => {
    const { url, origin } = await serveLoopback(
      ({ response }) => void response.writeHead(302, { location: "/new" }).end(),
    );
    expect(await sentence(callOnce(url))).toContain(`use ${origin}/new`);
  });

  test("in a circle end", async () => {
    let count = 0;
    const { url } = await serveLoopback(({ response }) => {
      count += 1;
      response.writeHead(307, { location: `/${count}` }).end();
    });
    expect(await sentence(callOnce(url))).toContain("more than 5 times");
    expect(count).toBe(6);
  });
});

describe("tokens and headers", () => {
  test("a variable that is not set, or empty, is named", async () => {
    expect(await sentence(callOnce("http://127.0.0.1:9/", "CLIENT_TEST_UNSET"))).toBe(
      "The variable CLIENT_TEST_UNSET is not set; it must hold the bearer token.",
    );
    expect(await sentence(callOnce("http://127.0.0.1:9/", setVariable("CLIENT_TEST_EMPTY", " ")))).toContain(
      "CLIENT_TEST_EMPTY is empty",
    );
  });

  test("a token is not sent over plain HTTP to other machines", async () => {
    const message = await sentence(callOnce("http://mcp.example/", setVariable("CLIENT_TEST_TOKEN", secret)));
    expect(message).toContain("use https");
    expect(message).not.toContain(secret);
  });

  test.each([["http://user:pass-word@127.0.0.1:9/"], ["ftp://user:pass-word@host/"], ["no url at all"]])(
    "the address %s is refused without repeating a password",
    async (url) => {
      const message = await sentence(connect({ url }));
      expect(message).toMatch(/must not hold a name or a password|no http or https URL/);
      expect(message).not.toContain("pass-word");
    },
  );

  test("a server that refuses us is said so once, without the token", async () => {
    let count = 0;
    const { url } = await serveLoopback((received) => {
      count += 1;
      refuse(received, 401, { code: -32600, message: "Who are you?" });
    });
    const message = await sentence(callOnce(url, setVariable("CLIENT_TEST_TOKEN", secret)));
    expect(message).toMatch(/refuses us \(HTTP status 401\).*Who are you\?/);
    expect(message).not.toContain(secret);
    expect(count).toBe(1);
  });

  test("a header that cannot be sent is named, its value is not", async () => {
    const message = await sentence(
      connect({ url: "http://127.0.0.1:9/", headers: { "X-Key": `${secret}\r\nEvil: 1` } }),
    );
    expect(message).toContain('"X-Key"');
    expect(message).not.toContain(secret);
  });

  test("headers are sent with every request, and do not replace the protocol's", async () => {
    const seen: unknown[] = [];
    const { url } = await serveLoopback(async (received) => {
      const { "x-team": team, "mcp-method": method, "content-type": type } = received.request.headers;
      seen.push([team, method, type]);
      await modern({ "tools/call": (call) => answer(call, text("ok")) })(received);
    });
    const client = await connect({
      url,
      headers: { "X-Team": "blue", "Mcp-Method": "fake", "Content-Type": "text/plain" },
    });
    await client.callTool("echo");
    await client.close();
    expect(seen).toEqual([
      ["blue", "server/discover", "application/json"],
      ["blue", "tools/call", "application/json"],
    ]);
  });
});

describe("a server that means harm", () => {
  test("cannot keep us connecting for ever", async () => {
    const { url } = await serveLoopback(() => undefined);
    const started = performance.now();
    expect(await sentence(connect({ url }, { timeoutMs: 300 }))).toBe("The server did not begin to talk within 0.3 s.");
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  test("that refuses for as long as we try is quoted", async () => {
    const { url } = await serveLoopback(({ response }) => {
      const error = { code: -32603, message: "The keys of the issuer cannot be read." };
      response.writeHead(503, { "content-type": "application/json", "retry-after": "1" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
    });
    expect(await sentence(connect({ url }, { timeoutMs: 500 }))).toBe(
      `${new URL(url).origin} answered with HTTP status 503. The keys of the issuer cannot be read. Further tries for 0.5 s did not help.`,
    );
  });

  test("cannot fill our memory with one message", async () => {
    const part = "x".repeat(1024 * 1024);
    const { url } = await serveLoopback(
      modern({
        "tools/call": ({ response }) => {
          response.writeHead(200, { "content-type": "application/json" });
          const pour = () => {
            while (!response.destroyed && response.write(part));
            response.once("drain", pour);
          };
          pour();
        },
      }),
    );
    expect(await sentence(callOnce(url))).toContain("larger than 10 MiB");
  });

  test("is not followed into a result of a type that nobody knows", async () => {
    const { url } = await serveLoopback(modern({ "tools/call": (call) => answer(call, { resultType: "portal" }) }));
    expect(await sentence(callOnce(url))).toContain('unknown type "portal"');
  });

  test("cannot ask and ask again without an end", async () => {
    const ask = { method: "elicitation/create", params: { message: "Again?", requestedSchema: {} } };
    const { url } = await serveLoopback(
      modern({ "tools/call": (call) => answer(call, { resultType: "input_required", inputRequests: { q: ask } }) }),
    );
    const client = await connect({ url });
    onTestFinished(() => client.close());
    expect(
      await sentence(client.callTool("echo", {}, { onInput: () => ({ action: "accept", content: {} }) })),
    ).toContain("has asked 20 times");
  });

  test("cannot list tools without an end", async () => {
    const { url } = await serveLoopback(
      modern({ "tools/list": (call) => answer(call, { tools: [{ name: "a", inputSchema: {} }], nextCursor: "more" }) }),
    );
    const client = await connect({ url });
    onTestFinished(() => client.close());
    expect(await sentence(client.listTools())).toContain("does not end");
  });

  test("has its words cut in our sentences", async () => {
    const { url } = await serveLoopback(
      modern({ "tools/call": (call) => refuse(call, 200, { code: -32000, message: "no ".repeat(10_000) }) }),
    );
    expect((await sentence(callOnce(url))).length).toBeLessThan(400);
  });
});

test("no connection is left open by a client that was closed", async () => {
  const open = new Set<object>();
  const { url } = await serveLoopback(async (received) => {
    const { socket } = received.request;
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    if (received.message.method === "server/discover") answer(received, discovered);
  });
  const client = await connect({ url });
  const call = client.callTool("never").catch((error: Error) => error.message);
  await expect.poll(() => open.size, { timeout: 50_000 }).toBe(2);
  await client.close();
  expect(await call).toContain("The connection is closed.");
  await expect.poll(() => open.size, { timeout: 50_000 }).toBe(0);
});
