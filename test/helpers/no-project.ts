import type { Cli } from "../../src/cli/dispatch.ts";

/** A command line in a folder without commands; whoever would run a project's code is told so. */
export const noProject: Pick<Cli, "version" | "readProject" | "loadProject" | "protectStdout" | "hasPrinted"> = {
  version: "1.2.3",
  readProject: () => ({
    commands: [],
    findBundled: () => [],
    wasLoaded: () => false,
    home: "/nowhere",
    config: {},
    isDebug: false,
    notice: undefined,
    describe: async () => undefined,
    isBundled: () => false,
    isServed: () => false,
    upstreams: [],
    mayAskHook: false,
  }),
  loadProject: () => Promise.reject(new Error("no project's code is needed here")),
  protectStdout: async () => {},
  hasPrinted: () => false,
};
