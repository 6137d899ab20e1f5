import { expect, test } from "vitest";
import { connectExtTasks } from "../helpers/ext-tasks.ts";
import {
  copyExample,
  fillForms,
  formCapabilities,
  postLine,
  serveExample,
  textResult,
} from "../helpers/sdk-examples.ts";

/**
 * SDK v1's own example servers, which speak nothing newer than 2025-11-25, unchanged but for one line, and the SDK's
 * client of 2026-07-28 with ext-tasks.
 */

test("simpleStreamableHttp over HTTP: answers, questions, and its own tasks, which every client can call", async () => {
  const file = copyExample("simpleStreamableHttp", postLine, "app.all('/mcp', durable(getServer).node);");
  const url = await serveExample(file);
  const { asked, answer } = fillForms();
  const contact = { infoType: "contact" };
  const { client } = await connectExtTasks({ url }, { capabilities: formCapabilities, answer, takesTasks: false });
  const { run, errors } = await connectExtTasks({ url }, { capabilities: formCapabilities, answer });
  const call = (name: string, input: object) => client.callTool({ name, arguments: { ...input } });
  for (const ask of [call, run]) {
    expect(await ask("greet", { name: "Ada" })).toMatchObject(textResult("Hello, Ada!"));
    expect(await ask("collect-user-info", contact)).toMatchObject(textResult(/^Thank you!.*Ada/s));
    expect(await ask("collect-user-info-task", contact)).toMatchObject(textResult(/^Collected contact info.*Ada/s));
    expect(await ask("delay", { duration: 50 })).toMatchObject(textResult("Completed 50ms delay"));
  }
  expect(asked).toHaveLength(4);
  expect(errors).toEqual([]);
});
