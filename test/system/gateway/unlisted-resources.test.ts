import path from "node:path";
import { describe, expect, test, vi } from "vitest";
import { shareAmongTests, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { openServer } from "../../helpers/server.ts";
import { resultOf, type WireClient } from "../../helpers/wire.ts";

const library = (name: string, era: string, more: object = {}) => ({
  command: process.execPath,
  args: [path.resolve("test/fixtures/gateway/library.mjs"), name],
  env: { ERA: era, ...more },
});
const wait = { timeout: 50_000, interval: 20 };

async function serve(upstreams: Readonly<Record<string, object>>, home = temporaryFolder()) {
  const server = await openServer({ in: "memory", wrap: { upstreams }, store: "sqlite", home });
  return (revision: string) => server.client({ revision });
}

/** Who has answered, as each says it in front. */
const readerOf = async (client: WireClient, uri: string) => {
  const { result, error } = await client.request("resources/read", { uri });
  return result?.contents.at(-1).text.replace(/ has .*/, "") ?? `${error?.code} ${error?.message}`;
};

describe("10: what is in no list is found by who named it", () => {
  const several = shareAmongTests(() =>
    serve({
      one: library("one", "2025"),
      two: library("two", "2025", { NOT_FOUND: "0" }),
      three: library("three", "2026"),
    }),
  );
  const revisions = ["2025-11-25", "2026-07-28"];

  test.each(revisions)(
    "in a tool's result, in a prompt's message, or in another resource, to a client of %s",
    async (revision) => {
      const client = await (await several())(revision);
      for (const [at, name] of ["two", "three", "two"].entries()) {
        const uri = (way: string) => `shared://${way}/${revision}/${at}`;
        await client.call(`${name}_link`, { uri: uri("link") });
        await client.call(`${name}_embed`, { uri: uri("embed") });
        await client.request("prompts/get", { name: `${name}_point`, arguments: { uri: uri("prompt") } });
        await client.request("resources/read", { uri: `${name}://holds/${uri("held")}` });
        for (const way of ["link", "embed", "prompt", "held"])
          expect([way, await readerOf(client, uri(way))]).toEqual([way, name]);
      }
      // Who named it last, and rather than whose template it fits.
      const moved = `shared://moved/${revision}`;
      await client.call("three_link", { uri: moved });
      await client.call("two_link", { uri: moved });
      expect(await readerOf(client, moved)).toBe("two");
      expect(await readerOf(client, "shared://template-of-three/7")).toBe("three");
      await client.call("two_link", { uri: `shared://template-of-three/${revision}` });
      expect(await readerOf(client, `shared://template-of-three/${revision}`)).toBe("two");
      // Who named what it does not have is asked in vain.
      await client.call("one_link", { uri: `two://hidden/${revision}` });
      expect(await readerOf(client, `two://hidden/${revision}`)).toBe("two");
      await client.call("two_link", { uri: "one://listed" });
      expect(await readerOf(client, "one://listed")).toBe("one");
    },
  );

  test.each(revisions)("nobody has named: each is asked in turn, for a client of %s", async (revision) => {
    const client = await (await several())(revision);
    expect(await readerOf(client, `shared://nobody/${revision}`)).toBe("one");
    expect(await readerOf(client, "three://nobody")).toBe("three");
    expect(await readerOf(client, "four://nobody")).toBe("-32002 Resource four://nobody not found");
    // What was read has been named by who has it.
    expect(await readerOf(client, "three://nobody")).toBe("three");
  });

  test("completion goes the same way", async () => {
    const client = await (await several())("2025-11-25");
    const complete = async (uri: string) => {
      const asked = { ref: { type: "ref/resource", uri }, argument: { name: "id", value: "" } };
      const { result, error } = await client.request("completion/complete", asked);
      return result?.completion.values ?? error?.message;
    };
    await client.call("two_link", { uri: "shared://complete/{id}" });
    expect(await complete("shared://complete/{id}")).toEqual(["two"]);
    expect(await complete("shared://template-of-three/{id}")).toEqual(["three"]);
    expect(await complete("three://nobody/{id}")).toEqual(["three"]);
    expect(await complete("four://nobody/{id}")).toBe("Resource four://nobody/{id} not found");
  });

  test("a client from before 2026-07-28 subscribes with who named it, and with all where nobody has", async () => {
    const client = await (await several())("2025-11-25");
    const updates = () => client.of("notifications/resources/updated").map(({ params }) => params);
    const named = "shared://subscribed/named";
    await client.call("three_link", { uri: named });
    expect((await client.request("resources/subscribe", { uri: named })).result).toEqual({});
    // What another says of it is not for who asked the one.
    await client.call("one_touch", { uri: named });
    await client.call("three_touch", { uri: named });
    await vi.waitFor(() => expect(updates()).toEqual([{ uri: named }]), wait);
    for (const uri of ["shared://subscribed/nobodys", "two://nobodys"]) {
      const before = updates().length;
      expect((await client.request("resources/subscribe", { uri })).result).toEqual({});
      await client.call("two_touch", { uri });
      await vi.waitFor(() => expect(updates().slice(before)).toEqual([{ uri }]), wait);
      expect((await client.request("resources/unsubscribe", { uri })).result).toEqual({});
      await client.call("two_touch", { uri });
      await client.call("two_touch", { uri: `${uri}/still` });
    }
    expect(updates()).toHaveLength(3);
  });

  test("a client of 2026-07-28 listens to who named it; what one refuses takes nothing from the rest", async () => {
    const client = await (await several())("2026-07-28");
    const uris = ["shared://heard/named", "shared://heard/nobodys", "two://heard"];
    await client.call("two_link", { uri: uris[0] });
    const notifications = { promptsListChanged: true, resourceSubscriptions: [...uris, "four://heard"] };
    client.start("subscriptions/listen", { notifications });
    const { params } = await client.comes("notifications/subscriptions/acknowledged");
    // Of 2026-07-28 the third takes what nobody has named, whatever it is.
    expect(params?.notifications).toMatchObject({ promptsListChanged: true });
    expect(params?.notifications.resourceSubscriptions).toEqual(expect.arrayContaining(uris));
    const updates = () => client.of("notifications/resources/updated").map((news) => news.params?.uri);
    for (const uri of uris) await client.call("two_touch", { uri });
    await vi.waitFor(() => expect(updates()).toEqual(uris), wait);
  });
});

test("10: pages, changes and log levels of each of several", async () => {
  const connect = await serve({ one: library("one", "2025"), two: library("two", "2025") });
  const client = await connect("2025-11-25");
  const list = async (method: string, field: string) =>
    (resultOf(await client.request(method))[field] as Record<string, string>[]).map(({ uri, name }) => uri ?? name);
  const [tools, prompts, resources] = await Promise.all([
    list("tools/list", "tools"),
    list("prompts/list", "prompts"),
    list("resources/list", "resources"),
  ]);
  expect(tools).toEqual(expect.arrayContaining(["one_link", "one_grow", "two_link", "two_grow"]));
  expect([prompts, resources]).toEqual([
    ["one_point", "two_point"],
    ["meanwhile://stats", "one://listed", "two://listed"],
  ]);

  await client.request("logging/setLevel", { level: "warning" });
  for (const name of ["one", "two"]) {
    const said = async () => (await client.call(`${name}_level`)).content?.[0]?.text;
    await vi.waitFor(async () => expect(await said()).toBe("warning"), wait);
  }

  await client.call("two_grow");
  for (const name of ["tools", "prompts", "resources"]) await client.comes(`notifications/${name}/list_changed`);
  expect(await list("tools/list", "tools")).toContain("two_grown");
  expect(await list("prompts/list", "prompts")).toEqual(["one_point", "two_point", "two_grown"]);
  expect(await list("resources/list", "resources")).toEqual([...resources, "shared://grown"]);
  expect(await readerOf(client, "shared://grown")).toBe("two");
  expect((await client.call("two_grown")).content?.[0]?.text).toBe("warning");
});

test("10: one that is known and does not come keeps nobody waiting who subscribes to what nobody has named", async () => {
  const [home, folder] = [temporaryFolder(), temporaryFolder()];
  const hold = path.join(folder, "hold");
  const one = { ...library("one", "2025", { HOLD_FILE: hold }), startSeconds: 600 };
  const upstreams = { one, two: library("two", "2025") };
  await (await serve(upstreams, home))("2025-11-25");
  writeFiles(folder, { hold: "" });
  const client = await (await serve(upstreams, home))("2025-11-25");
  const uri = "shared://slow";
  expect((await client.request("resources/subscribe", { uri })).result).toEqual({});
  await client.call("two_touch", { uri });
  await client.comes("notifications/resources/updated");
  expect((await client.request("resources/unsubscribe", { uri })).result).toEqual({});
});
