import { afterEach, describe, expect, test } from "vitest";
import { keepBuiltins, restoreBuiltins, settleBuiltins } from "../../src/command/builtins.ts";

keepBuiltins();
afterEach(() => expect(restoreBuiltins(true), "a test left something behind").toEqual([]));

// biome-ignore lint/suspicious/noExplicitAny: what commands do to built-ins has no types.
const roots: Record<"object" | "list", any> = { object: Object.prototype, list: Array.prototype };
const hidden = { value: () => "mine", configurable: true, writable: true, enumerable: false };
const { stringify } = JSON;
const then = "then";

describe("what a command does to the built-ins is undone and named", () => {
  test.each<[string, () => void]>([
    ["toJSON was added to Object.prototype", () => (roots.object.toJSON = () => "mine")],
    ["toJSON was added to Object.prototype", () => Object.defineProperty(roots.object, "toJSON", hidden)],
    ["then was added to Object.prototype", () => Object.defineProperty(roots.object, then, hidden)],
    ["get was added to Object.prototype", () => Object.defineProperty(roots.object, "get", hidden)],
    ["mine was added to Object.prototype", () => (roots.object.mine = 1)],
    ["last was added to Array.prototype", () => (roots.list.last = () => undefined)],
    ["JSON.stringify was replaced", () => (JSON.stringify = () => "mine")],
    ["Promise.prototype.then was replaced", () => (Promise.prototype[then] = (() => undefined) as never)],
    ["Symbol(Symbol.iterator) of Array.prototype was replaced", () => (roots.list[Symbol.iterator] = () => undefined)],
    ["Array.prototype.map was replaced", () => delete roots.list.map],
    ["setTimeout was replaced", () => (globalThis.setTimeout = (() => undefined) as never)],
    ["JSON was replaced", () => ((globalThis as { JSON: unknown }).JSON = {})],
  ])("%s", (change, harm) => {
    harm();
    const [quick, thorough] = [restoreBuiltins(false), restoreBuiltins(true)];
    expect([quick, thorough]).toEqual([[change], []]);
    expect([JSON.stringify === stringify, JSON.stringify([{}]), Object.keys(roots.object)]).toEqual([true, "[{}]", []]);
  });

  test("also what is only found by a thorough look", () => {
    String.prototype.padEnd = () => "mine";
    expect(restoreBuiltins(false)).toEqual([]);
    expect(restoreBuiltins(true)).toEqual(["String.prototype.padEnd was replaced"]);
    expect("a".padEnd(2)).toBe("a ");
  });
});

describe("what harms nobody stays", () => {
  test("an addition out of sight, as polyfills make them", () => {
    Object.defineProperty(roots.list, "lastOfAll", hidden);
    expect(restoreBuiltins(true)).toEqual([]);
    expect(roots.list.lastOfAll()).toBe("mine");
    delete roots.list.lastOfAll;
  });

  test("a built-in that is replaced while files are loaded, but no addition that everybody inherits", () => {
    const { padEnd } = String.prototype;
    String.prototype.padEnd = () => "mine";
    roots.object.mine = 1;
    expect(settleBuiltins()).toEqual(["mine was added to Object.prototype"]);
    expect(restoreBuiltins(true)).toEqual([]);
    expect("a".padEnd(2)).toBe("mine");
    String.prototype.padEnd = padEnd;
    settleBuiltins();
  });
});
