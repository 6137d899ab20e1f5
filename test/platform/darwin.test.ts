import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { createDarwin } from "../../src/system/darwin.ts";
import { answering } from "./recorded.ts";

const uuid = "6B29FC40-CA47-1067-B31D-00DD010662DA";

/** As macOS 15 prints these with LC_ALL=C and TZ=UTC. */
const recorded: Record<string, string> = {
  "/bin/ps -axo pid=,ppid=,pgid=,stat=,lstart=": `    1     0     1 Ss   Mon Nov 16 06:11:02 2026    
  501     1   501 S    Mon Nov 16 06:12:40 2026    
88010   501 88010 S+   Sun Nov  8 23:59:59 2026    
88011 88010 88010 Z    Mon Nov 16 13:00:00 2026    
`,
  "/bin/ps -o lstart= -p 88010": "Sun Nov  8 23:59:59 2026    \n",
  "/bin/ps -o stat= -p 88011": "Z+  \n",
  [`/bin/ps -o stat= -p ${process.pid}`]: "S+  \n",
  [`/bin/ps -o lstart= -p ${process.pid}`]: "Mon Nov 16 13:00:00 2026    \n",
  "/bin/ps -o rss= -p 88010": "  52384\n",
  "/bin/ps -Eww -o pid=,command= -p 501,88010,88012": `  501 /usr/local/bin/node server.js HOME=/Users/ada MEANWHILE_RUN=1f0c PATH=/usr/bin:/bin
88010 /bin/sh -c sleep 60
88012 node child.js MEANWHILE_RUN=1f0c-2
`,
  "/usr/sbin/sysctl -n kern.bootsessionuuid": `${uuid}\n`,
};

test("macOS: who runs, who has started whom, and when", () => {
  const darwin = createDarwin(answering(recorded));
  expect(darwin.processes()).toEqual([
    { pid: 1, parent: 0, group: 1, startedAt: Date.parse("2026-11-16T06:11:02Z") },
    { pid: 501, parent: 1, group: 501, startedAt: Date.parse("2026-11-16T06:12:40Z") },
    { pid: 88010, parent: 501, group: 88010, startedAt: Date.parse("2026-11-08T23:59:59Z") },
  ]);
  expect(darwin.beganAt(88010, "Sun Nov  8 23:59:59 2026")).toBe(true);
  expect(darwin.beganAt(88010, "Sun Nov  8 23:59:58 2026")).toBe(false);
  expect(darwin.beganAt(4, "Sun Nov  8 23:59:58 2026")).toBeUndefined();
  expect([darwin.ownStart(), darwin.bootId(), darwin.pidNamespace()]).toEqual(["Mon Nov 16 13:00:00 2026", uuid, "-"]);
});

test("macOS: a process that was who it should be is not asked about again", () => {
  const programs = answering(recorded);
  const darwin = createDarwin(programs);
  for (let count = 0; count < 3; count++) expect(darwin.beganAt(88010, "Sun Nov  8 23:59:59 2026")).toBe(true);
  expect(programs.asked).toHaveLength(1);
});

test("macOS: who lives; one that has ended and was not asked about does not", () => {
  const darwin = createDarwin(answering(recorded));
  expect(darwin.isAlive(process.pid)).toBe(true);
  expect(createDarwin(answering({ [`/bin/ps -o stat= -p ${process.pid}`]: "Z\n" })).isAlive(process.pid)).toBe(false);
  expect(darwin.isAlive(2 ** 30)).toBe(false);
});

test("macOS: whom a mark in the environment names, and nobody whose mark only begins alike", () => {
  const darwin = createDarwin(answering(recorded));
  expect(darwin.markedOf([501, 88010, 88012], "MEANWHILE_RUN=1f0c")).toEqual([501]);
  expect(darwin.markedOf([], "MEANWHILE_RUN=1f0c")).toEqual([]);
});

test("macOS: how much memory a process holds", async () => {
  const darwin = createDarwin(answering(recorded));
  expect(await darwin.memoryOf(88010)).toBe(52_384 * 1024);
  expect(await darwin.memoryOf(4)).toBeUndefined();
});

test.skipIf(!existsSync("/dev/fd")).each([
  ["256\n245760\n", true],
  ["unlimited\n245760\n", true],
  ["16\n245760\n", false],
  ["unlimited\n16\n", false],
  ["", true],
])("macOS: whether descriptors are left where a shell says %j", (said, isLeft) => {
  const limits = { "/bin/sh -c ulimit -n; /usr/sbin/sysctl -n kern.maxfilesperproc": said };
  expect(createDarwin(answering(limits)).hasDescriptorsLeft()).toBe(isLeft);
});
