import type { JsonSchema } from "../command/schema.ts";
import type { Completion, CompletionOptions, CompletionRequest } from "./complete.ts";

/**
 * Returns the values that can stand for an argument of a JSON Schema. Throws a `CommandError` where `schema` is no JSON
 * Schema. The engine is loaded at the first call, so that importing Meanwhile does not load it.
 */
export async function complete(
  schema: JsonSchema,
  request?: CompletionRequest,
  options?: CompletionOptions,
): Promise<Completion> {
  const [engine, { checkSchema }] = await Promise.all([import("./complete.ts"), import("./check-schema.ts")]);
  await checkSchema(schema);
  return await engine.complete(schema, request, options);
}
