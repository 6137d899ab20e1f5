import type { DaemonStatus } from "../../src/daemon/greeting.ts";

/** What a daemon says of itself that nobody is connected to. */
export const plainStatus: DaemonStatus = {
  pid: 77,
  version: "0",
  startedAt: 0,
  cwd: "/",
  folders: [],
  configFile: undefined,
  socket: "",
  connections: 0,
  running: 0,
  calls: 0,
  graceSeconds: 25,
};
