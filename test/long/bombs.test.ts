import { expect, test } from "vitest";
import { slowlyRefused, transformed } from "../system/document-bombs.ts";

test.for(slowlyRefused)("%s is refused in one sentence", async ([_title, name, make, sentence, input]) => {
  const { text } = await transformed(name, make(), input);
  expect(text).toContain(`${name} was not transformed: ${sentence}`);
});
