import { readdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { homeAt } from "../../src/paths.ts";
import { findHttpServer, recordHttpServer } from "../../src/runtime/http-record.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

/** Which server of this home listens on a port or a socket. */

const facts = { url: "http://127.0.0.1:7337/mcp", folder: "/project" };
const place = { port: 7337 };

function openHome() {
  const folder = temporaryFolder();
  const home = homeAt({ MEANWHILE_HOME: folder });
  const records = () => readdirSync(path.join(folder, "run")).filter((name) => name.endsWith(".http"));
  /** Changes what the only record says. */
  const change = (more: object) => {
    const [name = ""] = records();
    writeFiles(folder, { [`run/${name}`]: JSON.stringify({ ...findHttpServer(home, place), ...more }) });
  };
  return { home, records, change };
}

test("is the one that recorded itself there, until it closes", () => {
  const { home } = openHome();
  expect(findHttpServer(home, place)).toBeUndefined();
  const forget = recordHttpServer(home, place, facts);
  expect(findHttpServer(home, place)).toMatchObject({ ...facts, pid: process.pid });
  expect(findHttpServer(home, { port: 7338 })).toBeUndefined();
  expect(findHttpServer(home, { socket: "7337" })).toBeUndefined();
  forget();
  expect(findHttpServer(home, place)).toBeUndefined();
});

test("is none whose process has ended, also where another process has its ID by now", () => {
  const { home, records, change } = openHome();
  recordHttpServer(home, place, facts);
  change({ start: "another start" });
  expect(findHttpServer(home, place)).toBeUndefined();
  change({ ...facts, pid: 2 ** 30, start: undefined });
  expect(findHttpServer(home, place)).toBeUndefined();
  // The next server removes what dead ones have left.
  recordHttpServer(home, { port: 7338 }, facts);
  expect(records()).toHaveLength(1);
});

test("is not known from a record that is damaged", () => {
  const { home, records } = openHome();
  recordHttpServer(home, place, facts);
  const [name = ""] = records();
  for (const text of ["", "{", "null", "[]", '{"pid":"1","url":"x","folder":"y"}']) {
    writeFiles(home.folder, { [`run/${name}`]: text });
    expect(findHttpServer(home, place), text).toBeUndefined();
  }
});
