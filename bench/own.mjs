// Meanwhile beside itself: other commands, other projects, and the build of an older commit, so that "before" is
// measured in the same run.
import { openHttp, openStdio } from "./client.mjs";
import { makeProjects } from "./projects.mjs";
import { createMeanwhile } from "./servers.mjs";

const listed = 1_000;
const lists = { counts: { warmUp: 20, one: 0, many: 10 }, width: 1 };

/** Makes the projects; gives what measures one round. `before` is a checkout, if there is one to compare with. */
export function createOwn({ folder, before, turns, calls, envOf }) {
  const projects = makeProjects(folder);
  const checkouts = [{}, ...(before === undefined ? [] : [{ name: "before", checkout: before }])];
  /** Every Meanwhile on each of these projects. */
  const onEach = (names, toEntry) =>
    names.flatMap((project) =>
      checkouts
        .map((one) => createMeanwhile({ ...one, project: projects[project] }))
        .map((server) => toEntry(server, project)),
    );
  const callsOf = (names, suffix, open) =>
    onEach(names, (server, project) => ({ id: `${project}${suffix}`, name: server.name, open: () => open(server) }));
  const overStdio = callsOf(Object.keys(projects), "", (server) => openStdio(server, envOf(server)));
  const overHttp = callsOf(["plain", "hooked"], "-http", (server) =>
    openHttp(server, envOf(server), { revision: "2026-07-28" }),
  );
  const listing = onEach(["many"], (server) => ({
    id: "list",
    name: server.name,
    open: () => openLists(server, envOf(server)),
  }));
  const starting = onEach(["many"], (server) => ({ id: "many-start", server, env: envOf(server) }));
  return async () => {
    await turns.compareCalls(overStdio, { counts: { ...calls.stdio, one: 0 }, width: 64 });
    await turns.compareCalls(overHttp, { counts: { ...calls.http, one: 0 }, width: 32 });
    await turns.compareCalls(listing, lists);
    await turns.compareStarts(starting);
  };
}

/** A call of this client is a look at all tools. */
async function openLists(server, env) {
  const client = await openStdio(server, env);
  return {
    ...client,
    async call() {
      const { result } = await client.request("tools/list", {});
      if (!(result?.tools.length >= listed)) throw new Error(`${server.name} listed ${result?.tools.length} tools`);
    },
  };
}
