import { describe, expect, test } from "vitest";
import { namesIn, serveGateway, textIn, type User } from "../helpers/gateway.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { httpUpstream } from "../helpers/upstreams.ts";
import { waitFor } from "../helpers/wait-for.ts";

const user = (scopes: readonly string[], groups: readonly string[] = []): User => ({
  issuer: "https://issuer.example",
  subject: "ada",
  scopes: ["meanwhile:call", ...scopes],
  groups,
});

const access = [
  { tools: "up_echo", scopes: ["echo"] },
  { tools: "up_*", groups: ["ops"] },
];

const open = async (rules: readonly object[] = access) => {
  const upstream = await httpUpstream();
  const config = {
    auth: { access: rules },
    upstreams: { up: { url: upstream.url } },
    upstreamPrefix: "always" as const,
  };
  const gateway = await serveGateway({ config: config as object });
  return { upstream, ...gateway };
};
const callsOf = ({ seen }: { readonly seen: readonly { readonly message: { readonly method?: string } }[] }) =>
  seen.filter(({ message }) => message.method === "tools/call").length;

describe.each(["2025-11-25", "2026-07-28"])("tools of an upstream on %s", (revision) => {
  test("need the scopes of a rule, also in the first request of all", async () => {
    const { upstream, connectHttp } = await open();
    const without = await connectHttp(revision, user([]));
    const call = { name: "up_echo", arguments: { text: "hello" } };
    const refused = await without.request("tools/call", call);
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([
      403,
      'Bearer error="insufficient_scope", scope="meanwhile:call echo"',
    ]);
    expect(callsOf(upstream)).toBe(0);
    const granted = await connectHttp(revision, user(["echo"]));
    expect(textIn(await granted.call("up_echo", { text: "hello" }))).toBe("hello");
  });

  test("of a group are unknown to callers of other groups, before and after they are listed", async () => {
    const { upstream, connectHttp } = await open();
    const outside = await connectHttp(revision, user(["echo"]));
    const bytesOf = async (name: string) => {
      const { status, text } = await outside.request("tools/call", { name, arguments: {} }, { id: 5_000 });
      return [status, text.replaceAll(name, "NAME").replaceAll(/^id: .*$/gm, "id: EVENT")];
    };
    const unknown = await bytesOf("up_missing");
    expect(await bytesOf("count"), "by the upstream's own name").toEqual(unknown);
    expect(await bytesOf("up_count")).toEqual(unknown);
    const names = await namesIn(outside, "tools");
    expect(names.filter((name) => name.startsWith("up_"))).toEqual(["up_echo"]);
    expect(await bytesOf("up_count")).toEqual(await bytesOf("up_nix"));
    expect(callsOf(upstream)).toBe(0);
    const inside = await connectHttp(revision, user([], ["ops"]));
    expect((await namesIn(inside, "tools")).filter((name) => name.startsWith("up_")).length).toBeGreaterThan(1);
  });
});

test.each(["2025-11-25", "2026-07-28"])(
  "a tool of the only upstream of a wrapped entry is unknown to callers of other groups (%s)",
  async (revision) => {
    const upstream = await httpUpstream();
    const rules = { auth: { access: [{ tools: "count", groups: ["ops"] }] } };
    const home = writeFiles(temporaryFolder(), { "config.json": JSON.stringify(rules) });
    const { connectHttp } = await serveGateway({ wrap: { upstreams: { up: { url: upstream.url } } }, home });
    const outside = await connectHttp(revision, user([]));
    const bytesOf = async (name: string) => {
      const { status, text } = await outside.request("tools/call", { name, arguments: {} }, { id: 5_000 });
      return [status, text.replaceAll(name, "NAME").replaceAll(/^id: .*$/gm, "id: EVENT")];
    };
    expect(await bytesOf("count")).toEqual(await bytesOf("xxxxx"));
    expect(await namesIn(outside, "tools")).not.toContain("count");
    expect(await bytesOf("count")).toEqual(await bytesOf("xxxxx"));
    expect(callsOf(upstream)).toBe(0);
    expect(textIn(await outside.call("echo", { text: "hello" }))).toBe("hello");
    const inside = await connectHttp(revision, user([], ["ops"]));
    expect(await namesIn(inside, "tools")).toContain("count");
    expect((await inside.call("count")).isError).not.toBe(true);
  },
);

test("a pattern that matches no tool is a warning, once the upstreams have said what they have", async () => {
  const { logged, connectHttp } = await open([{ tools: "up_echo" }, { tools: "up_ecko" }, { tools: "*zzz*" }]);
  const warnings = () => logged.filter((text) => text.startsWith("auth.access"));
  expect(warnings()).toEqual([]);
  await namesIn(await connectHttp("2025-11-25"), "tools");
  await waitFor(() => warnings().length > 0);
  expect(warnings()).toEqual([
    "auth.access: the pattern up_ecko matches no tool; did you mean up_echo?",
    "auth.access: the pattern *zzz* matches no tool; correct the pattern, or remove the rule",
  ]);
});
