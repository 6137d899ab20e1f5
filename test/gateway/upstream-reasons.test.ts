/** Who is told why an upstream fails: the reason may name files and addresses of the server's machine. */
import { expect, test } from "vitest";
import { serveGateway } from "../helpers/gateway.ts";
import { plainTool, scriptedUpstream } from "../helpers/scripted-upstream.ts";
import { takesJobs } from "../helpers/wire.ts";

const ada = { issuer: "https://login.example", subject: "ada" };
const others = [ada, "anonymous"] as const;
const revisions = ["2025-11-25", "2026-07-28"] as const;
const printed = "Cannot open /srv/secret/index.db";

/** An upstream that lists its tools and prompts, and ends at what `endsAt` names. */
function mortal() {
  const state = { endsAt: "" };
  const safe = { ...plainTool("look"), annotations: { readOnlyHint: true } };
  const upstream = scriptedUpstream({
    capabilities: { tools: {}, prompts: {} },
    tools: () => [plainTool("count"), safe],
    answer: ({ id, method }, { stderr, exit }) => {
      if (method === state.endsAt) {
        stderr.write(`${printed}\n`);
        exit(3);
        return [];
      }
      return method === "prompts/list" ? [{ jsonrpc: "2.0", id, result: { prompts: [{ name: "greet" }] } }] : undefined;
    },
  });
  return { state, upstream };
}

test.each(revisions)("instructions give the reason to the local user alone (%s)", async (revision) => {
  const upstreams = {
    keyless: { ...scriptedUpstream(), env: { KEY: "file:/srv/secret/key" } },
    off: { ...scriptedUpstream(), disabled: true },
    good: scriptedUpstream(),
  };
  const { connectHttp, connect, logged } = await serveGateway({ config: { bundled: false, upstreams } });
  const reason =
    "The upstream keyless, `env.KEY`: /srv/secret/key cannot be read (ENOENT); make it, readable by you alone.";
  const instructionsOf = async (client: Awaited<ReturnType<typeof connect>>) =>
    revision === "2025-11-25"
      ? client.initialized.instructions
      : (await client.request("server/discover")).result?.instructions;
  const whole = `${reason}\nThe upstream off is not served: it is disabled in the config.`;
  // The first client has each upstream started.
  await connect("2025-11-25");
  expect(await instructionsOf(await connectHttp(revision))).toBe(whole);
  expect(await instructionsOf(await connect(revision))).toBe(whole);
  for (const caller of others)
    expect(await instructionsOf(await connectHttp(revision, caller))).toBe(
      "The upstream keyless cannot be used now.\nThe upstream off is not served.",
    );
  expect(logged).toContain(reason);
});

test.each(revisions)("a call that fails gives the reason to the local user alone (%s)", async (revision) => {
  const { state, upstream } = mortal();
  const { connectHttp, connect, logged } = await serveGateway({ wrap: { upstreams: { theirs: upstream } } });
  await connect();
  const failuresOf = async (caller: "local" | (typeof others)[number]) => {
    const client = await connectHttp(revision, caller);
    const texts: unknown[] = [];
    for (const [endsAt, tool] of [
      ["tools/call", "count"],
      ["tools/call", "look"],
      ["initialize", "count"],
    ] as const) {
      state.endsAt = endsAt;
      const { structuredContent, isError } = await client.call(tool);
      expect(isError).toBe(true);
      texts.push(structuredContent?.messages[0]?.text);
    }
    state.endsAt = "prompts/get";
    texts.push((await client.request("prompts/get", { name: "greet" })).error?.message);
    state.endsAt = "";
    return texts;
  };
  const lost = "The upstream theirs was lost in the middle of";
  const why = expect.stringContaining(printed);
  expect(await failuresOf("local")).toEqual([why, why, why, why]);
  for (const caller of others) {
    const before = logged.length;
    expect(await failuresOf(caller)).toEqual([
      `${lost} count.`,
      `${lost} look.`,
      "The upstream theirs cannot be used now.",
      "The upstream theirs was lost in prompts/get.",
    ]);
    for (const start of [`${lost} count. `, `${lost} look. `, "The upstream theirs was lost in prompts/get. "])
      expect(logged.slice(before)).toContainEqual(expect.stringMatching(new RegExp(`^${start}.*${printed}`)));
  }
});

test("the causes of a failed job are the local user's", async () => {
  const { state, upstream } = mortal();
  const { connectHttp, connect } = await serveGateway({ wrap: { upstreams: { theirs: upstream } } });
  await connect();
  state.endsAt = "tools/call";
  const options = { revision: "2025-11-25", capabilities: takesJobs };
  expect(JSON.stringify(await (await connectHttp(options)).call("look"))).toContain("caused by");
  const result = JSON.stringify(await (await connectHttp(options, ada)).call("look"));
  expect(result).toContain("was lost in the middle of look.");
  expect(result).not.toContain("/srv");
});

test("an upstream alone that cannot be started refuses other callers without the reason", async () => {
  const { state, upstream } = mortal();
  state.endsAt = "initialize";
  const { connectHttp, logged } = await serveGateway({ wrap: { upstreams: { theirs: upstream } } });
  const refusal = "The upstream theirs cannot be used now.";
  for (const caller of others) await expect(connectHttp("2025-11-25", caller)).rejects.toThrow(refusal);
  const modern = await connectHttp("2026-07-28", ada);
  expect((await modern.request("tools/list")).error?.message).toBe(refusal);
  await expect(connectHttp("2025-11-25")).rejects.toThrow(printed);
  expect(logged).toContainEqual(expect.stringContaining(printed));
});
