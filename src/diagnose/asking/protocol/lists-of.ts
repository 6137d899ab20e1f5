import type { Json } from "../../../wire/json.ts";

export interface ListMethod {
  readonly method: string;
  /** Where the result has its items. */
  readonly field: string;
  /** What tells items apart. */
  readonly key: "name" | "uri" | "uriTemplate";
  /** Servers with resources need not have templates. */
  readonly isOptional: boolean;
}

/** The lists that a server says it has. */
export function listsOf(capabilities: Json): readonly ListMethod[] {
  const lists: ListMethod[] = [];
  if (capabilities.tools !== undefined)
    lists.push({ method: "tools/list", field: "tools", key: "name", isOptional: false });
  if (capabilities.prompts !== undefined)
    lists.push({ method: "prompts/list", field: "prompts", key: "name", isOptional: false });
  if (capabilities.resources !== undefined) {
    lists.push({ method: "resources/list", field: "resources", key: "uri", isOptional: false });
    lists.push({
      method: "resources/templates/list",
      field: "resourceTemplates",
      key: "uriTemplate",
      isOptional: true,
    });
  }
  return lists;
}
