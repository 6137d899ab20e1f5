import { expect, test } from "vitest";
import { nextRoots, type RootsEvent, type SharedRoots } from "../../src/mcp/shared-roots.ts";

const ended = Promise.resolve();
const states: Readonly<Record<string, SharedRoots<string>>> = {
  unused: { state: "unused" },
  wanted: { state: "wanted" },
  "asking a": { state: "asking", client: "a", ended },
  "given a": { state: "given", client: "a" },
};
const events: readonly RootsEvent<string>[] = [
  { event: "asked without client" },
  { event: "call", client: "b", ended },
  { event: "asking ended", client: "a" },
  { event: "only session", client: "b" },
];
const unchanged = "";

test.each([
  ["unused", ["wanted", unchanged, unchanged, "given b"]],
  ["wanted", [unchanged, "asking b", unchanged, "given b"]],
  ["asking a", [unchanged, unchanged, "given a", "given b"]],
  ["given a", [unchanged, unchanged, unchanged, "given b"]],
] as const)("the state %s changes as the table says", (name, after) => {
  const from = states[name] as SharedRoots<string>;
  const shown = events.map((event) => {
    const to = nextRoots(from, event);
    return to === from ? unchanged : "client" in to ? `${to.state} ${to.client}` : to.state;
  });
  expect(shown).toEqual(after);
});

test("the session whose roots the server has changes nothing, nor does the end of asking another client", () => {
  for (const [from, event] of [
    [states["given a"], { event: "only session", client: "a" }],
    [states["asking a"], { event: "asking ended", client: "b" }],
  ] as const)
    expect(nextRoots(from as SharedRoots<string>, event)).toBe(from);
});
