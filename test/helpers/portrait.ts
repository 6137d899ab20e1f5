import { waitFor } from "./meanwhile.ts";
import type { Fields, Message, WireClient } from "./wire.ts";

/** All that a client sees of a server, as one object, whatever both of them speak. */

type Outcome = Fields;

export interface Portrait {
  readonly hello: Fields;
  readonly tools: readonly Fields[];
  readonly resources: readonly Fields[];
  readonly templates: readonly Fields[];
  readonly prompts: readonly Fields[];
  /** What requests were answered with, by what was asked. */
  readonly answers: Readonly<Record<string, Outcome>>;
  /** What came meanwhile: updates of what was subscribed to, and lines of its log. */
  readonly heard: Readonly<Record<string, unknown>>;
}

/** What is asked of it. */
export interface Sitter {
  readonly calls: readonly (readonly [name: string, args: Fields])[];
  readonly reads: readonly string[];
  readonly prompts: readonly (readonly [name: string, args: Fields])[];
  readonly completions: readonly Fields[];
  /** A resource, and the call that changes it. */
  readonly watched?: { readonly uri: string; readonly call: readonly [name: string, args: Fields] };
  /** The call that logs a line which has this in it. */
  readonly logged?: { readonly call: readonly [name: string, args: Fields]; readonly words: string };
}

export const asker = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

export async function portray(client: WireClient, sitter: Sitter): Promise<Portrait> {
  const questions = answerQuestions(client);
  const isModern = client.revision >= "2026-07-28";
  const hello = isModern ? await discovered(client) : client.initialized;
  const list = async (method: string, name: string) => (await ask(client, method)).result?.[name] ?? [];
  const [tools, resources, templates, prompts] = [
    await list("tools/list", "tools"),
    await list("resources/list", "resources"),
    await list("resources/templates/list", "resourceTemplates"),
    await list("prompts/list", "prompts"),
  ];
  const answers: Record<string, Outcome> = {};
  const keep = async (method: string, params: Fields) => {
    answers[`${method} ${JSON.stringify(params)}`] = await ask(client, method, params, questions);
  };
  for (const [name, args] of sitter.calls) await keep("tools/call", { name, arguments: args });
  for (const uri of sitter.reads) await keep("resources/read", { uri });
  for (const [name, args] of sitter.prompts) await keep("prompts/get", { name, arguments: args });
  for (const params of sitter.completions) await keep("completion/complete", params);
  const heard = {
    questions,
    updated: sitter.watched && (await watch(client, sitter.watched)),
    logged: sitter.logged && (await listen(client, sitter.logged)),
  };
  return { hello, tools, resources, templates, prompts, answers, heard };
}

/** What it says of itself, in the fields of a handshake. */
async function discovered(client: WireClient): Promise<Fields> {
  const { _meta, supportedVersions: _versions, ...rest } = (await ask(client, "server/discover")).result ?? {};
  return { ...rest, serverInfo: _meta?.["io.modelcontextprotocol/serverInfo"] };
}

/** Asks, and since 2026-07-28 again with the answers to what it asks back. */
async function ask(
  client: WireClient,
  method: string,
  params: Fields = {},
  questions: Fields[] = [],
): Promise<Outcome> {
  let more: Fields = {};
  for (;;) {
    const { result, error } = await client.request(method, { ...params, ...more });
    if (error !== undefined) return { error };
    if (result?.resultType !== "input_required") return { result };
    const asked = Object.entries(result.inputRequests as Record<string, Message>);
    for (const [, question] of asked) note(questions, question);
    const inputResponses = Object.fromEntries(asked.map(([key, question]) => [key, answerTo(question)]));
    more = { inputResponses, ...(result.requestState !== undefined && { requestState: result.requestState }) };
  }
}

function answerTo({ method, params }: Pick<Message, "method" | "params">): Fields {
  if (method === "roots/list") return { roots: [{ uri: "file:///ann", name: "ann" }] };
  if (method === "sampling/createMessage")
    return { model: "m", role: "assistant", content: { type: "text", text: "sampled" } };
  return { action: "accept", ...(params?.mode !== "url" && { content: { name: "Ann", check: true } }) };
}

/** What it asks meanwhile, as it was asked. */
function answerQuestions(client: WireClient): Fields[] {
  const asked: Fields[] = [];
  client.onMessage((message) => {
    if (message.method === undefined || message.id == null) return;
    note(asked, message);
    void client.respond(message.id, answerTo(message));
  });
  return asked;
}

function note(questions: Fields[], { method, params }: Pick<Message, "method" | "params">): void {
  // It looks at the folders by itself, at any time.
  if (method !== "roots/list") questions.push({ method, params: withoutMeta(params) });
}

const withoutMeta = ({ _meta: _ours, ...params }: Fields = {}) => params;

async function watch(client: WireClient, { uri, call }: NonNullable<Sitter["watched"]>): Promise<unknown> {
  const isModern = client.revision >= "2026-07-28";
  if (isModern) {
    client.start("subscriptions/listen", { notifications: { resourceSubscriptions: [uri] } });
    await client.comes("notifications/subscriptions/acknowledged");
  } else await client.request("resources/subscribe", { uri });
  const [name, args] = call;
  await ask(client, "tools/call", { name, arguments: args });
  const { params } = await client.comes("notifications/resources/updated");
  if (!isModern) await client.request("resources/unsubscribe", { uri });
  return withoutMeta(params);
}

/** Every line that came, of calls with three levels: one of them is too high for it. */
async function listen(client: WireClient, { call, words }: NonNullable<Sitter["logged"]>): Promise<unknown> {
  const isModern = client.revision >= "2026-07-28";
  const [name, args] = call;
  const lines = () => client.of("notifications/message").filter(({ params }) => JSON.stringify(params).includes(words));
  for (const level of ["debug", "error", "info"]) {
    const before = lines().length;
    if (!isModern) await client.request("logging/setLevel", { level });
    const meta = { _meta: { "io.modelcontextprotocol/logLevel": level } };
    await ask(client, "tools/call", { name, arguments: args, ...(isModern && meta) });
    if (level !== "error") await waitFor(() => lines().length > before);
  }
  return lines().map(({ params }) => withoutMeta(params));
}
