import { expect, test } from "vitest";
import type { Authentication } from "../../src/auth/authentication.ts";
import { keyCaller } from "../../src/command/caller.ts";
import { openServer } from "../helpers/server.ts";

const withScope = (scope: string): Authentication => ({ caller: keyCaller("ci", { scopes: [scope] }) });

test("callers with equal rights share a router, and routers for more than 50 sets of rights are dropped", async () => {
  const { served } = (await openServer({ in: "http", commands: {} })).runtime.serving;
  const [one, other] = [withScope("a"), withScope("b")];
  const [first, second] = [served.routerFor(one), served.routerFor(other)];
  expect(served.routerFor(withScope("a"))).toBe(first);
  for (let at = 0; at < 49; at++) {
    served.routerFor(withScope(`more:${at}`));
    expect(served.routerFor(one), "used again and again").toBe(first);
  }
  expect(served.routerFor(other), "not used").not.toBe(second);
});
