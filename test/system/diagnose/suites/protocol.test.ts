import { expect, test } from "vitest";
import { check } from "../../../../src/diagnose/suites/protocol/shutdown.ts";
import { ask, piped, surveyed } from "../../../helpers/diagnose.ts";
import { findingsIn } from "../../../helpers/suite.ts";

test("protocol/shutdown tells of a server that leaves a process of its own behind", async () => {
  const target = piped("server.mjs", "--break", "protocol/shutdown~child");
  const verdict = await ask(check, target, { facts: await surveyed(target) });
  expect(findingsIn({ [check.id]: verdict })).toEqual([
    { id: "protocol/shutdown", title: "The server leaves processes of its own behind" },
  ]);
});
