import { statSync } from "node:fs";
import path from "node:path";
import { describe, expect, test, vi } from "vitest";
import { UpstreamNames } from "../../src/gateway/upstream-names.ts";
import type { UpstreamPrefix } from "../../src/project/upstream-config.ts";
import { temporaryFolder } from "../helpers/home.ts";

const upstreams = ["one", "two"];

function open(prefix: UpstreamPrefix, file?: string, ours: readonly string[] = []) {
  const names = new UpstreamNames({ file, upstreams, prefix, isVerbatim: false });
  names.reserve((name) => ours.includes(name));
  const tool = (upstream: string, own: string) => names.nameOf("tool", { upstream, own });
  return { names, tool };
}

describe("10: names of several upstreams", () => {
  test("bear the upstream's always, on a collision or never, and lead back by the table", () => {
    const always = open("always");
    expect([always.tool("one", "search"), always.tool("two", "search")]).toEqual(["one_search", "two_search"]);
    expect(always.names.find("tool", "two_search")).toEqual({ upstream: "two", own: "search" });
    // By no other way: what looks like a prefix is part of a name.
    expect(always.names.find("tool", "one_other")).toBeUndefined();
    expect(always.names.find("prompt", "one_search")).toBeUndefined();

    const collision = open("collision", undefined, ["task_result"]);
    expect(["search", "task_result"].map((own) => collision.tool("one", own))).toEqual(["search", "one_task_result"]);
    expect(collision.tool("two", "search")).toBe("two_search");
    expect(collision.tool("one", "search")).toBe("search");

    const never = open("never");
    expect([never.tool("one", "search"), never.tool("two", "search")]).toEqual(["search", undefined]);
    expect(never.names.find("tool", "search")).toEqual({ upstream: "one", own: "search" });
  });

  test("fit into 48 letters that every model API takes, and no two are alike", () => {
    const { names, tool } = open("always");
    const long = [tool("one", "n".repeat(200)), tool("one", `${"n".repeat(200)}2`)] as string[];
    expect(new Set(long).size).toBe(2);
    const odd = [tool("one", "with spaces"), tool("one", "with/spaces"), tool("one", "ünïcode")] as string[];
    expect(odd[0]).toBe("one_with_spaces");
    expect(odd[1]).toMatch(/^one_with_spaces_[0-9a-f]{8}$/);
    for (const name of [...long, ...odd]) expect(name).toMatch(/^[A-Za-z0-9_-]{1,48}$/);
    expect(names.find("tool", odd[1] as string)).toEqual({ upstream: "one", own: "with/spaces" });
    // The prefix of one may make the name of another.
    const alike = open("always");
    expect(alike.tool("one", "a_b")).toBe("one_a_b");
    const names2 = new UpstreamNames({ file: undefined, upstreams: ["a", "a_b"], prefix: "always", isVerbatim: false });
    expect(names2.nameOf("tool", { upstream: "a", own: "b_c" })).toBe("a_b_c");
    expect(names2.nameOf("tool", { upstream: "a_b", own: "c" })).toMatch(/^a_b_c_[0-9a-f]{8}$/);
    const never = open("never");
    expect([never.tool("one", "a b"), never.tool("one", "a_b")]).toEqual(["a_b", expect.stringMatching(/^a_b_\w{8}$/)]);
  });

  test("stay with what they were given to, whoever comes first the next time; a name of ours wins", async () => {
    const file = path.join(temporaryFolder(), "run", "names.json");
    const first = open("collision", file);
    expect([first.tool("one", "search"), first.tool("two", "search")]).toEqual(["search", "two_search"]);
    await vi.waitFor(() => expect(statSync(file).mode & 0o777).toBe(0o600));
    const second = open("collision", file);
    expect([second.tool("two", "search"), second.tool("one", "search")]).toEqual(["two_search", "search"]);
    // What another process has given in the meantime counts here too.
    expect(second.tool("two", "late")).toBe("late");
    await vi.waitFor(() => expect(open("collision", file).names.find("tool", "late")).toBeDefined());
    expect([first.tool("one", "late"), first.tool("two", "late")]).toEqual(["one_late", "late"]);
    const ours = open("collision", file, ["search"]);
    expect([ours.tool("one", "search"), ours.names.find("tool", "search")]).toEqual(["one_search", undefined]);
    // Another rule makes other names.
    expect(open("always", file).tool("one", "search")).toBe("one_search");
  });
});
