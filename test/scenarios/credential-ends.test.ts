import { describe, expect, test } from "vitest";
import type { Authentication } from "../../src/auth/authentication.ts";
import { keyCaller } from "../../src/command/caller.ts";
import { defineCommand } from "../../src/command/command.ts";
import { FakeClock, pass } from "../helpers/fake-clock.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { modernMeta } from "../helpers/wire.ts";

/** What happens to open responses when their credential expires or is revoked. */

const hold = defineCommand({
  name: "hold",
  summary: "Run until it is cancelled",
  run: (_input, { signal }) =>
    new Promise<object>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    }),
});

async function open(authentication: Partial<Authentication> | (() => Partial<Authentication>)) {
  const clock = new FakeClock();
  const facts = () => (typeof authentication === "function" ? authentication() : authentication);
  const server = await openServer({
    commands: { hold },
    in: "http",
    clock,
    identify: () => ({ caller: keyCaller("ci", { scopes: ["meanwhile:call"] }), ...facts() }),
  });
  const url = await server.url();
  const post = (method: string, params: object, headers: Record<string, string>) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: modernMeta({}) } });
    const sent = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    return fetch(url, { method: "POST", headers: { ...sent, "mcp-protocol-version": "2026-07-28", ...headers }, body });
  };
  const listen = () =>
    post(
      "subscriptions/listen",
      { notifications: { toolsListChanged: true } },
      { "mcp-method": "subscriptions/listen" },
    );
  const call = () =>
    post("tools/call", { name: "hold", arguments: {} }, { "mcp-method": "tools/call", "mcp-name": "hold" });
  return { clock, listen, call };
}

/** Reads a stream to its end; true where it ended, be it by an error. */
function endOf(response: Response) {
  const seen = { hasEnded: false };
  void response.text().then(
    () => (seen.hasEnded = true),
    () => (seen.hasEnded = true),
  );
  return seen;
}

describe.each<[string, (now: number, state: { isValid: boolean }) => Partial<Authentication>]>([
  ["was revoked", (_now, state) => ({ isStillValid: async () => state.isValid })],
  ["has expired", (now, state) => ({ validUntil: state.isValid ? now + 4_000 : 0 })],
])("a credential that %s", (what, factsOf) => {
  test("ends a stream within 5 s", async () => {
    const state = { isValid: true };
    let facts: Partial<Authentication> = {};
    const { clock, listen } = await open(() => facts);
    facts = factsOf(clock.now(), state);
    const end = endOf(await listen());
    await pass(clock, 3_000);
    expect(end.hasEnded).toBe(false);
    state.isValid = false;
    await pass(clock, what === "was revoked" ? 5_000 : 3_000);
    await waitFor(() => end.hasEnded);
  });

  test("answers a call that still runs with 401", async () => {
    const state = { isValid: true };
    let facts: Partial<Authentication> = {};
    const { clock, call } = await open(() => facts);
    facts = factsOf(clock.now(), state);
    let status: number | undefined;
    void call().then((response) => {
      status = response.status;
    });
    await pass(clock, 1_000);
    state.isValid = false;
    await waitFor(async () => {
      await pass(clock, 500);
      return status !== undefined;
    });
    expect(status).toBe(401);
  });
});

test("a credential that cannot be checked now stays valid for an open stream", async () => {
  const { clock, listen } = await open({ isStillValid: () => Promise.reject(new Error("the store is away")) });
  const end = endOf(await listen());
  await pass(clock, 20_000);
  expect(end.hasEnded).toBe(false);
});
