#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { createCli } from "meanwhile";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
await createCli({
  name: "acme",
  version,
  summary: "reports of a quarter",
  commands: new URL("../commands/", import.meta.url),
  instructions: "Reports of a quarter: report_list says which there are, report_build makes one.",
}).run();
