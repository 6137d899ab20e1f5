import { readAllPages } from "../mcp/guest-answer.ts";
import type { Result } from "../mcp/request.ts";
import type { Json } from "../wire/json.ts";

/** What an upstream lists, whole. */
export interface UpstreamLists {
  readonly tools: readonly Json[];
  readonly prompts: readonly Json[];
  readonly resources: readonly Json[];
  readonly resourceTemplates: readonly Json[];
}

export type ListedName = keyof UpstreamLists;

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

/** Reads what an upstream with these capabilities lists; what it does not have is empty. */
export async function readLists(
  capabilities: Json,
  ask: (method: string, params: Json) => Promise<Result>,
  wanted: readonly ListedName[] = names,
): Promise<UpstreamLists> {
  const read = async (name: ListedName): Promise<readonly Json[]> => {
    if (!wanted.includes(name) || capabilities[name === "resourceTemplates" ? "resources" : name] === undefined)
      return [];
    const pages = readAllPages(name, (cursor) => ask(methods[name], cursor === undefined ? {} : { cursor }));
    // Many have resources and know no templates.
    return await (name === "resourceTemplates" ? pages.catch(() => []) : pages);
  };
  const [tools, prompts, resources, resourceTemplates] = await Promise.all(names.map(read));
  return {
    tools: tools ?? [],
    prompts: prompts ?? [],
    resources: resources ?? [],
    resourceTemplates: resourceTemplates ?? [],
  };
}
