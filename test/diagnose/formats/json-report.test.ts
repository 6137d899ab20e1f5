import { readFileSync } from "node:fs";
import path from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { readReport, toJson } from "../../../src/diagnose/formats/json-report.ts";
import { reportSchema } from "../../../src/diagnose/formats/report-schema.ts";
import { sample, samples } from "../../fixtures/diagnose/reports/samples.ts";

const [good, bad] = [sample("good"), sample("bad")];

describe("as JSON", () => {
  test.each(samples)("the %s report comes back as it was", (name) => {
    const report = sample(name);
    expect(readReport(toJson(report), "a.json")).toEqual(report);
    expect(toJson(report).endsWith("}\n")).toBe(true);
  });

  test("the published schema is the one reports are read by", () => {
    expect(publishedSchema()).toEqual(JSON.parse(JSON.stringify(z.toJSONSchema(reportSchema, { io: "input" }))));
  });

  test("the published schema takes the samples and nothing else", () => {
    const validate = new Ajv2020({ formats: { "date-time": true } }).compile(publishedSchema() as object);
    for (const name of samples)
      expect(validate(JSON.parse(toJson(sample(name)))), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ ...bad, version: 2 })).toBe(false);
    expect(validate({ ...bad, findings: [{ ...bad.findings[0], severity: "critical" }] })).toBe(false);
  });

  test.each([
    ["nothing", "", "a.json is empty; a report is JSON."],
    ["half an object", "{", "a.json is not JSON; a report is what `meanwhile diagnose … --format json` writes."],
    ["a list", "[]", "a.json is no report of a diagnosis; `meanwhile diagnose … --format json` writes one."],
    ["null", "null", "a.json is no report of a diagnosis; `meanwhile diagnose … --format json` writes one."],
    [
      "a newer version",
      JSON.stringify({ version: 2, madeBy: { name: "meanwhile", version: "9.0.0" } }),
      "a.json is a report of version 2, made by Meanwhile 9.0.0; this one reads version 1: update Meanwhile.",
    ],
    [
      "an unknown severity",
      JSON.stringify({ ...good, findings: [{ ...good.findings[0], severity: "critical" }] }),
      "a.json is a damaged report: findings[0].severity is not as it was written (",
    ],
  ])("%s is refused in one sentence", (_, text, sentence) => {
    expect(() => readReport(text, "a.json")).toThrow(sentence);
  });
});

function publishedSchema(): unknown {
  return JSON.parse(readFileSync(path.resolve(import.meta.dirname, "../../../docs/diagnose.schema.json"), "utf8"));
}
