import {
  acceptedContent,
  completable,
  type GetPromptResult,
  inputRequired,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { pixelPng } from "../fixtures.ts";

type Content = GetPromptResult["messages"][number]["content"];

export function registerPrompts(server: McpServer): void {
  server.registerPrompt("test_simple_prompt", { description: "One message" }, () =>
    prompt(text("This is a simple prompt for testing.")),
  );

  const args = z.object({ arg1: completable(z.string(), suggest), arg2: z.string() });
  server.registerPrompt(
    "test_prompt_with_arguments",
    { description: "Repeats its arguments", argsSchema: args },
    ({ arg1, arg2 }) => prompt(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );

  const embedded = {
    description: "A resource and what to do with it",
    argsSchema: z.object({ resourceUri: z.string() }),
  };
  server.registerPrompt("test_prompt_with_embedded_resource", embedded, ({ resourceUri: uri }) =>
    prompt(
      { type: "resource", resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." } },
      text("Please process the embedded resource above."),
    ),
  );

  server.registerPrompt("test_prompt_with_image", { description: "A picture and what to do with it" }, () =>
    prompt({ type: "image", data: pixelPng, mimeType: "image/png" }, text("Please analyze the image above.")),
  );

  server.registerPrompt(
    "test_input_required_result_prompt",
    { description: "Asks the person before it is written" },
    askForContext,
  );
}

const contextForm = z.object({ context: z.string() });

function askForContext(ctx: ServerContext) {
  const answer = acceptedContent(ctx.mcpReq.inputResponses, "user_context", contextForm);
  if (answer !== undefined) return prompt(text(`Use the following context: ${answer.context}`));
  const question = inputRequired.elicit({
    message: "What context should the prompt use?",
    requestedSchema: contextForm,
  });
  return inputRequired({ inputRequests: { user_context: question } });
}

function suggest(start: string): string[] {
  return ["paris", "park", "party", "test"].filter((word) => word.startsWith(start));
}

function prompt(...parts: Content[]): GetPromptResult {
  return { messages: parts.map((content) => ({ role: "user", content })) };
}

function text(value: string): Content {
  return { type: "text", text: value };
}
