import { expect, test } from "vitest";
import { callTool } from "../../../src/testing/call-tool.ts";
import { temporaryFolder } from "../../helpers/home.ts";

test("callTool() runs a bundled command that reads a document in a reader process", async () => {
  const options = { commands: temporaryFolder(), home: temporaryFolder(), toolPrefix: "wksm" };
  const envelope = await callTool("wksm_transform", { file_path: "README.md", engine: "markdown" }, options);
  expect(envelope).toMatchObject({ success: true, data: { engine: "markdown" } });
});
