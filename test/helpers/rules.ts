import path from "node:path";
import { shareAmongTests } from "./home.ts";
import type { Started } from "./meanwhile.ts";
import { isEnded, openPlace, type Place, taskWhen } from "./place.ts";
import { type Fields, ModernClient, SessionClient, takesAll } from "./wire.ts";

/** What the rules of tasks and of progress, T1–T22 and P1–P6, are held against: the real server, message by message. */

export const commands = path.resolve(import.meta.dirname, "../fixtures/rules/commands");

export interface Both {
  readonly place: Place;
  readonly server: Started & { readonly url: string };
  readonly core: SessionClient;
  readonly modern: ModernClient;
}

/** A server over HTTP with a client of each revision, both the local user; on the same place it is the next server. */
export async function openBoth(place: Place = openPlace({ commands, isApart: true })): Promise<Both> {
  return await enter({ place, server: await place.startHttp() });
}

/**
 * For the tests of a file that look at nothing but their own tasks, and end no server: one over HTTP, and one for each
 * revision on a pipe, on the same home.
 */
export function shareServers() {
  const shared = shareAmongTests(async () => {
    const place = openPlace({ commands });
    return { place, server: await place.startHttp() };
  });
  const onPipe = (revision: string, capabilities?: object) =>
    shareAmongTests(async () => await (await shared()).place.startPipe(revision, capabilities));
  return {
    both: async () => await enter(await shared()),
    core: onPipe("2025-11-25"),
    modern: onPipe("2026-07-28", takesAll),
  };
}

async function enter({ place, server }: Pick<Both, "place" | "server">): Promise<Both> {
  const headers = place.local();
  const core = await SessionClient.begin(server.url, { headers });
  return { place, server, core, modern: new ModernClient(server.url, { headers, capabilities: takesAll }) };
}

export const accept = (text: string) => ({ action: "accept", content: { text } });

/** The open questions of a task, once there are some that were not seen before. */
export async function nextQuestions(
  modern: ModernClient,
  taskId: string,
  known: ReadonlyMap<string, unknown> = new Map(),
): Promise<Record<string, Fields>> {
  const isNews = (task: Fields) =>
    Object.keys(task.inputRequests ?? {}).some((key) => !known.has(key)) || isEnded(task);
  return (await taskWhen(modern, taskId, isNews)).inputRequests ?? {};
}
