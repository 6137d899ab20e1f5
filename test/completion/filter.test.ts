import { expect, test } from "vitest";
import { filterCompletions } from "../../src/completion/filter.ts";

test("what begins as typed comes first, and alone", () => {
  expect(filterCompletions(["apple", "Apricot", "banana", "apricot", "grape"], "ap")).toEqual(["apple", "apricot"]);
});

test("nothing typed: everything, each once", () => {
  expect(filterCompletions(["b", "a", "b"], "")).toEqual(["b", "a"]);
});

test("only when nothing begins so, upper and lower case are the same", () => {
  expect(filterCompletions(["Apple", "apricot", "APE"], "AP")).toEqual(["APE"]);
  expect(filterCompletions(["Apple", "apricot", "grape"], "aP")).toEqual(["Apple", "apricot"]);
});

test("only when nothing begins so in any case, the letters in their order will do: the front first, then the closest together", () => {
  expect(filterCompletions(["format", "transform", "form-atlas", "fast-motion"], "fmt")).toEqual([
    "format",
    "form-atlas",
    "fast-motion",
  ]);
  expect(filterCompletions(["staging", "production"], "prd")).toEqual(["production"]);
  expect(filterCompletions(["red", "blue"], "x")).toEqual([]);
});
