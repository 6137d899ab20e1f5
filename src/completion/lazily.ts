import type { JsonSchema } from "../command/schema.ts";
import type { Completion, CompletionOptions, CompletionRequest } from "./complete.ts";

/**
 * Values for an argument of a JSON Schema. Loads its engine at the first use, so that importing Meanwhile costs nothing
 * for it.
 */
export async function complete(
  schema: JsonSchema,
  request?: CompletionRequest,
  options?: CompletionOptions,
): Promise<Completion> {
  const engine = await import("./complete.ts");
  return await engine.complete(schema, request, options);
}
