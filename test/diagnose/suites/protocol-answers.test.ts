import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import type { Facts } from "../../../src/diagnose/asking/facts.ts";
import { check as answers } from "../../../src/diagnose/suites/protocol/answers.ts";
import { startFixture } from "../../fixtures/diagnose/server.mjs";
import { ask, piped, reached, surveyed } from "../../helpers/diagnose.ts";
import { findingsIn } from "../../helpers/suite.ts";

describe("a server that cannot be spoken to is told why", () => {
  const nobody: Facts = {
    transport: "http",
    modern: undefined,
    legacy: undefined,
    tools: [],
    isLocked: false,
    problem: "no answer",
  };

  test("where it wants credentials, that is not held against it: it is said how to give them", async () => {
    const { url, close } = await startFixture({ tokens: ["right-token"] });
    const [none, wrong] = [
      await ask(answers, reached(url)),
      await ask(answers, reached(url, { authorization: "Bearer wrong-token-1234" })),
    ];
    await close();
    const cure = "give --token-env NAME (or --header 'Name: value').";
    expect(none).toEqual({ outcome: "skipped", why: `It wants credentials: ${cure}` });
    expect(wrong).toEqual({ outcome: "skipped", why: `It wants other credentials than those given: ${cure}` });
  });

  test("where it redirects to another host, without what may be secret in the way", async () => {
    const server = createServer(
      (_req, res) => void res.writeHead(308, { location: "https://login.example/go?code=hidden-1234" }).end(),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const target = reached(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
    const known = await surveyed(target);
    const verdict = await ask(answers, target, { facts: known });
    await new Promise((resolve) => server.close(resolve));
    expect(known.movedTo).toBeUndefined();
    expect(verdict).toMatchObject({ findings: [{ title: "The server redirects to another host (HTTP status 308)" }] });
    expect(JSON.stringify(verdict)).toContain("HTTP 308, Location: https://login.example");
    expect(JSON.stringify(verdict)).not.toContain("hidden-1234");
  });

  test("where nothing listens, where the address is not allowed, and where there is no such command", async () => {
    const { url, close } = await startFixture();
    await close();
    const told = async (...[target, known]: [Parameters<typeof ask>[1], Facts]) =>
      findingsIn({ a: await ask(answers, target, { facts: known }) })[0]?.title;
    expect(await told(reached(url), nobody)).toBe("Nothing listens at this address");
    expect(await told(reached("http://169.254.169.254/mcp"), nobody)).toBe("The address may not be spoken to");
    expect(await told(piped("/no/such/command"), { ...nobody, transport: "stdio" })).toBe(
      "The server cannot be started",
    );
  });

  test("with what it printed, where it left", async () => {
    const verdict = await ask(answers, piped("server.mjs", "--break", "protocol/answers~leaves"), {
      facts: { ...nobody, transport: "stdio" },
    });
    expect(JSON.stringify(verdict)).toContain("The variable API_KEY is missing.");
  });
});
