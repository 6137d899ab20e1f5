import { expect, onTestFinished, test } from "vitest";
import { childEnvironment } from "../../src/system/child-environment.ts";

test("a child gets the environment that it needs, and nothing that is between our own processes", () => {
  Object.assign(process.env, {
    MEANWHILE_DAEMON_KEY: "k",
    MEANWHILE_SECRET: "s",
    MEANWHILE_HOME: "/h",
    AUTHORS_API_KEY: "a",
  });
  onTestFinished(() => {
    for (const name of ["MEANWHILE_DAEMON_KEY", "MEANWHILE_SECRET", "MEANWHILE_HOME", "AUTHORS_API_KEY"])
      delete process.env[name];
  });
  const env = childEnvironment();
  expect(Object.keys(env).filter((name) => name.startsWith("MEANWHILE_"))).toEqual(["MEANWHILE_HOME"]);
  expect(env).toMatchObject({ AUTHORS_API_KEY: "a", PATH: process.env.PATH });
});
