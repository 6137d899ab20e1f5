import type { Answer, Origin, Question, Root } from "../command/context.ts";

/** A client's folders, as a test gives them. */

/** The origin of a client that has declared folders. */
export function withRoots(origin: Origin, roots: readonly Root[] | undefined): Origin {
  if (roots === undefined) return origin;
  const { client } = origin;
  return { ...origin, client: { ...client, capabilities: { ...client?.capabilities, roots: {} } } };
}

/** The client's answer, where a question asks for its folders. */
export function answerRoots({ request }: Question, roots: readonly Root[] | undefined): Answer | undefined {
  return request?.method === "roots/list" && roots !== undefined ? { action: "accept", content: { roots } } : undefined;
}
