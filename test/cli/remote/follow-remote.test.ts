import { describe, expect, test } from "vitest";
import { leftAlone } from "../../../src/cli/follow-work.ts";
import { followRemote, type RemoteOptions } from "../../../src/cli/remote/follow-remote.ts";
import { HeldLines } from "../../../src/cli/screens/held-lines.ts";
import { StageView } from "../../../src/cli/terminal.ts";
import type { FollowOptions, TaskState } from "../../../src/client/client.ts";
import { Cancelled } from "../../../src/errors.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { openTerminalHere } from "../../helpers/terminal.ts";

const task: TaskState = { taskId: "t1", status: "working" };

/** Work that lasts until it is aborted, at a terminal where signals can be sent but nobody asked. */
function follow(options: Partial<RemoteOptions> = {}, work?: (follow: FollowOptions) => Promise<string>) {
  const left: number[] = [];
  let signal: (how: "interrupt" | "leave") => void = () => {};
  const { terminal, said } = openTerminalHere({
    onInterrupt(listener) {
      signal = listener;
      return () => (signal = () => {});
    },
    leave: (code) => left.push(code),
  });
  const untilAborted = ({ signal: stop }: FollowOptions) =>
    new Promise<string>((_, reject) => stop?.addEventListener("abort", () => reject(new Error("lost"))));
  const remote = {
    terminal,
    isQuiet: false,
    canDetach: true,
    wayBack: (id: string) => `back to ${id}`,
    wayToAnswer: () => "",
    ...options,
  };
  const ended = followRemote(remote, work ?? untilAborted);
  ended.catch(() => undefined);
  return { ended, left, said, send: (how: "interrupt" | "leave") => signal(how) };
}

describe("a signal", () => {
  test("cancels what is no task, whatever its server made of that", async () => {
    for (const how of ["interrupt", "leave"] as const) {
      const { ended, send } = follow();
      send(how);
      await expect(ended).rejects.toThrow(new Cancelled("Cancelled."));
    }
  });

  test("that comes a second time leaves at once", async () => {
    const { left, send } = follow({}, () => new Promise(() => undefined));
    send("interrupt");
    expect(left).toEqual([]);
    send("interrupt");
    expect(left).toEqual([130]);
  });

  test("cancels a task where nobody can be asked", async () => {
    const { ended, send } = follow({ task });
    send("interrupt");
    await expect(ended).rejects.toThrow(Cancelled);
  });

  test("that closes the terminal leaves a task alone, unless its server ends with us", async () => {
    const { ended, send, said } = follow({ task });
    send("leave");
    expect(await ended).toBe(leftAlone);
    expect(said()).toBe("  It keeps running: back to t1\n");
    const short = follow({ task, canDetach: false });
    short.send("leave");
    await expect(short.ended).rejects.toThrow(Cancelled);
  });
});

describe("what is seen in a pipe", () => {
  const tell = (options: Partial<RemoteOptions>) =>
    follow(options, async ({ onTask, onProgress }) => {
      onTask?.({ ...task, statusMessage: "Warming\x1b[2J up" });
      onTask?.({ ...task, statusMessage: "Page 1 of 2 (50%, about 3 s left)" });
      onProgress?.({ done: 1, total: 2, message: "Page 1 of 2 (50%, about 3 s left)" });
      return "done";
    });

  test("the task, what it says, and how far it is: each once", async () => {
    const { ended, said } = tell({});
    expect(await ended).toBe("done");
    expect(said()).toBe("  Task t1\n› Warming [2J up\n 50%  Page 1 of 2\n");
  });

  test("nothing of a task that is only to be left alone, and nothing at all when quiet", async () => {
    const leaving = tell({ isLeaving: true });
    await leaving.ended;
    expect(leaving.said()).toBe(" 50%  Page 1 of 2\n");
    const quiet = tell({ isQuiet: true, story: { endpoint: ".", ttlMs: undefined, pollIntervalMs: undefined } });
    await quiet.ended;
    expect(quiet.said()).toBe("");
  });
});

test("a question has the screen for itself: what is said meanwhile is said after it, in order", async () => {
  const said: string[] = [];
  const lines = new HeldLines((line) => said.push(line));
  lines.line("before");
  const answered = Promise.withResolvers<string>();
  const asking = lines.holdDuring(() => answered.promise);
  for (const line of ["one", "two"]) lines.line(line);
  expect(said).toEqual(["before"]);
  answered.resolve("yes");
  expect(await asking).toBe("yes");
  lines.line("after");
  expect(said).toEqual(["before", "one", "two", "after"]);
  const failing = lines.holdDuring(() => Promise.reject(new Error("gone")));
  lines.line("last");
  await expect(failing).rejects.toThrow("gone");
  expect(said.at(-1)).toBe("last");
});

test("the time left of a task that is met on its way counts from its beginning", () => {
  const clock = new FakeClock();
  const { terminal, said } = openTerminalHere({ isLive: true });
  const view = new StageView(terminal, { clock, elapsedMs: 30_000 });
  view.progress({ value: 50, total: 100, percentage: 50, message: undefined, context: undefined });
  clock.advance(100);
  expect(said()).toMatch(/50% {2}about 31 s left$/);
  view.end();
});
