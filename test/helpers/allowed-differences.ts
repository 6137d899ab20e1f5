import type { Portrait } from "./portrait.ts";
import type { Fields } from "./wire.ts";

/** What may be different behind `wrap`, each with its reason; nothing else may. */

interface Difference {
  readonly why: string;
  /** The portrait without it. */
  without(portrait: Portrait): Portrait;
}

const hop = "io.modelcontextprotocol/serverInfo";
const extension = "io.modelcontextprotocol/tasks";

const allowed: readonly Difference[] = [
  {
    why: "five tools of ours follow up what takes long",
    without: (portrait) => ({ ...portrait, tools: portrait.tools.filter(({ name }) => !/^task_/.test(name)) }),
  },
  {
    why: "every tool can be called as a task, and _meta says whether it takes long",
    without: (portrait) => ({
      ...portrait,
      tools: portrait.tools.map(withoutTask),
      hello: withoutTasks(portrait.hello),
    }),
  },
  {
    why: "we say ourselves when a server that was started anew lists other tools than those that were kept of it",
    without: ({ hello, ...portrait }) => {
      const { tools, ...capabilities } = hello.capabilities as Fields;
      return {
        ...portrait,
        hello: { ...hello, capabilities: { ...capabilities, tools: { ...tools, listChanged: true } } },
      };
    },
  },
  {
    why: "a client that may get a handle in place of structured content is told so by the schema",
    without: (portrait) => ({ ...portrait, tools: portrait.tools.map(withoutHandle) }),
  },
  {
    why: "since 2026-07-28 a result says of which kind it is, who made it and how long it may be kept: that is the hop's",
    without: (portrait) => ({
      ...portrait,
      hello: withoutHop(portrait.hello),
      answers: mapAnswers(portrait, ({ result, error }) =>
        result === undefined ? { error } : { result: withoutHop(result) },
      ),
    }),
  },
  {
    why: "a call that was asked something is a task by then, which _meta names",
    without: (portrait) => ({ ...portrait, answers: mapAnswers(portrait, withoutCall) }),
  },
  {
    why: "of a tool that is not there nobody can say more than that, and our sentence says where to look",
    without: (portrait) => ({ ...portrait, answers: mapAnswers(portrait, withoutWords) }),
  },
  {
    why: "each side is spoken to in its own revision",
    without: (portrait) => {
      const { protocolVersion: _revision, ...hello } = portrait.hello;
      return { ...portrait, hello };
    },
  },
];

/** A portrait by which two servers are the same. */
export const essence = (portrait: Portrait): Portrait =>
  allowed.reduce((rest, difference) => difference.without(rest), portrait);

function mapAnswers({ answers }: Portrait, without: (answer: Fields) => Fields): Portrait["answers"] {
  return Object.fromEntries(Object.entries(answers).map(([asked, answer]) => [asked, without(answer)]));
}

function withoutCall({ result, error }: Fields): Fields {
  if (result?._meta?.["meanwhile/call"] === undefined) return { result, error };
  const { _meta, ...rest } = result;
  const { "meanwhile/call": _ours, ...meta } = _meta;
  return { result: { ...rest, ...(Object.keys(meta).length > 0 && { _meta: meta }) } };
}

function withoutWords({ result, error }: Fields): Fields {
  if (!/^(MCP error -32602: )?(Tool \S+ not found|Unknown tool )/.test(error?.message)) return { result, error };
  return { error: { ...error, message: "<there is no such tool>" } };
}

function withoutTask({ execution: _execution, _meta, ...tool }: Fields): Fields {
  const { "meanwhile/tool": _ours, ...meta } = _meta ?? {};
  return { ...tool, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
}

function withoutTasks({ capabilities, ...hello }: Fields): Fields {
  const { tasks: _tasks, extensions = {}, ...others } = capabilities;
  const { [extension]: _ours, ...rest } = extensions;
  return { ...hello, capabilities: { ...others, ...(Object.keys(rest).length > 0 && { extensions: rest }) } };
}

function withoutHandle({ outputSchema, ...tool }: Fields): Fields {
  return { ...tool, ...(outputSchema !== undefined && { outputSchema: withoutEnvelope(outputSchema) }) };
}

/** An output schema as the server lists it, without the envelope that Meanwhile adds to it. */
export function withoutEnvelope(schema: Fields): Fields {
  const { anyOf, ...rest } = schema;
  const [own, envelope] = (anyOf as Fields[] | undefined) ?? [];
  const isOurs = JSON.stringify(envelope) === '{"required":["messages"]}';
  return isOurs ? { ...rest, ...own } : schema;
}

function withoutHop({ resultType: _kind, ttlMs: _ttl, cacheScope: _scope, _meta, ...result }: Fields): Fields {
  const { [hop]: _who, ...meta } = _meta ?? {};
  return { ...result, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
}
