import { expect, test } from "vitest";
import { describeQuestions } from "../../../src/cli/screens/question-list.ts";

const question = {
  tool: "ask_name",
  taskId: "0123456789abcdef",
  message: "Shall the report of the third quarter be sent to all readers at once?",
};

test("a long question goes on below its beginning on a terminal", () => {
  expect(describeQuestions([question], { isLive: true, columns: 60 })).toBe(
    [
      "    01234567  ask_name  «Shall the report of the third",
      "                        quarter be sent to all readers at",
      "                        once?»",
      "",
    ].join("\n"),
  );
});

test("a question is one line in a pipe", () => {
  expect(describeQuestions([question], { isLive: false, columns: 60 })).toBe(
    `    01234567  ask_name  «${question.message}»\n`,
  );
});
