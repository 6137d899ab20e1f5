import { readAllPages } from "../mcp/guest-answer.ts";
import type { Result } from "../mcp/request.ts";
import type { Json } from "../wire/json.ts";

export type ListedName = "tools" | "prompts" | "resources" | "resourceTemplates";

/** What an upstream lists, whole. */
export interface UpstreamLists extends Readonly<Record<ListedName, readonly Json[]>> {
  /** The lists that the upstream did not give when it was last asked. A client that asks for one gets its own answer. */
  readonly unread?: readonly ListedName[];
}

export const noLists: UpstreamLists = { tools: [], prompts: [], resources: [], resourceTemplates: [] };

const methods: Readonly<Record<ListedName, string>> = {
  tools: "tools/list",
  prompts: "prompts/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
};

const names = Object.keys(methods) as ListedName[];

/** The list that a method asks for; undefined for another method. */
export function listFor(method: string): ListedName | undefined {
  return names.find((name) => methods[name] === method);
}

/** The lists that a notification says have changed. */
export function listsIn(method: string): readonly ListedName[] {
  if (method === "notifications/tools/list_changed") return ["tools"];
  if (method === "notifications/prompts/list_changed") return ["prompts"];
  return method === "notifications/resources/list_changed" ? ["resources", "resourceTemplates"] : [];
}

interface ReadOptions {
  /** Default: all. */
  readonly wanted?: readonly ListedName[];
  /** Whether a list may be left unread after this error. Default: no. */
  readonly mayFail?: (name: ListedName, error: unknown) => boolean;
}

/**
 * Reads what an upstream with these capabilities lists. A list that it does not have is empty, and so is one that it
 * does not give; `unread` names the latter.
 */
export async function readLists(
  capabilities: Json,
  ask: (method: string, params: Json) => Promise<Result>,
  { wanted = names, mayFail = () => false }: ReadOptions = {},
): Promise<UpstreamLists> {
  const unread: ListedName[] = [];
  const read = async (name: ListedName): Promise<readonly Json[]> => {
    if (!wanted.includes(name) || capabilities[name === "resourceTemplates" ? "resources" : name] === undefined)
      return [];
    try {
      return await readAllPages(name, (cursor) => ask(methods[name], cursor === undefined ? {} : { cursor }));
    } catch (error) {
      if (!mayFail(name, error)) throw error;
      unread.push(name);
      return [];
    }
  };
  const [tools, prompts, resources, resourceTemplates] = await Promise.all(names.map(read));
  return {
    tools: tools ?? [],
    prompts: prompts ?? [],
    resources: resources ?? [],
    resourceTemplates: resourceTemplates ?? [],
    ...(unread.length > 0 && { unread }),
  };
}

/** These lists, with what was known before in place of those that are unread. */
export function withKnown(lists: UpstreamLists, before: UpstreamLists | undefined): UpstreamLists {
  const { unread = [] } = lists;
  if (before === undefined || unread.length === 0) return lists;
  return { ...lists, ...Object.fromEntries(unread.map((name) => [name, before[name]])) };
}

/** These lists with one that was read anew. */
export function withRead(
  { unread = [], ...lists }: UpstreamLists,
  name: ListedName,
  items: readonly Json[],
): UpstreamLists {
  const others = unread.filter((one) => one !== name);
  return { ...lists, [name]: items, ...(others.length > 0 && { unread: others }) };
}
