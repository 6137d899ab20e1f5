import { randomBytes } from "node:crypto";
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createRequestStateCodec,
  type InputRequests,
  inputRequired,
  inputResponse,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { say } from "./say.ts";

/**
 * Tools that ask for what a command cannot: the client's model, its folders, or an answer under a name of their own.
 * Each says what it still needs until the call carries it; the SDK asks clients before 2026-07-28 by request.
 */
export function registerInputTools(server: McpServer): void {
  const promptInput = z.object({ prompt: z.string() });
  server.registerTool(
    "test_sampling",
    { description: "Hands a prompt to the client's model", inputSchema: promptInput },
    ({ prompt }, ctx) => {
      const answer = sampledText(ctx, "answer");
      return answer === undefined
        ? inputRequired({ inputRequests: { answer: sample(prompt) } })
        : say(`LLM response: ${answer}`);
    },
  );

  server.registerTool("test_missing_capability", { description: "Needs a client that lends its model" }, (ctx) => {
    const answer = sampledText(ctx, "answer");
    return answer === undefined ? inputRequired({ inputRequests: { answer: sample("Say pong") } }) : say(answer);
  });

  server.registerTool(
    "test_input_required_result_elicitation",
    { description: "Asks the person for a name" },
    (ctx) => {
      const name = givenName(ctx);
      return name === undefined ? inputRequired({ inputRequests: { user_name: askName() } }) : say(`Hello, ${name}!`);
    },
  );

  server.registerTool(
    "test_input_required_result_sampling",
    { description: "Asks the client's model for a capital" },
    (ctx) => {
      const answer = sampledText(ctx, "capital_question");
      const capital_question = sample("What is the capital of France?");
      return answer === undefined ? inputRequired({ inputRequests: { capital_question } }) : say(answer);
    },
  );

  server.registerTool(
    "test_input_required_result_list_roots",
    { description: "Asks for the client's folders" },
    (ctx) => {
      const roots = givenRoots(ctx);
      return roots === undefined
        ? inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
        : say(`Roots: ${roots.join(", ")}`);
    },
  );

  server.registerTool(
    "test_input_required_result_multiple_inputs",
    { description: "Asks person, model and client at once" },
    askEverybody,
  );
  server.registerTool(
    "test_input_required_result_capabilities",
    { description: "Asks only what the client can answer" },
    askWhomItCan,
  );
}

const states = createRequestStateCodec<{ askedAt: number }>({ key: randomBytes(32) });

async function askEverybody(ctx: ServerContext) {
  const state = ctx.mcpReq.requestState<string>();
  if (state !== undefined) await states.verify(state, ctx);
  const name = givenName(ctx);
  const greeting = sampledText(ctx, "greeting");
  const roots = givenRoots(ctx);
  if (name !== undefined && greeting !== undefined && roots !== undefined)
    return say(`${greeting} ${name}, with ${roots.length} roots`);
  return inputRequired({
    inputRequests: {
      user_name: askName(),
      greeting: sample("Generate a greeting"),
      client_roots: inputRequired.listRoots(),
    },
    requestState: await states.mint({ askedAt: Date.now() }),
  });
}

function askWhomItCan(ctx: ServerContext) {
  if (ctx.mcpReq.inputResponses !== undefined) return say("Thank you.");
  const { [CLIENT_CAPABILITIES_META_KEY]: can } = (ctx.mcpReq.envelope ?? {}) as {
    [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities;
  };
  const inputRequests: InputRequests = {
    ...(can?.elicitation && { user_name: askName() }),
    ...(can?.sampling && { greeting: sample("Generate a greeting") }),
    ...(can?.roots && { client_roots: inputRequired.listRoots() }),
  };
  return Object.keys(inputRequests).length > 0 ? inputRequired({ inputRequests }) : say("There is nobody to ask.");
}

const nameForm = z.object({ name: z.string() });

function askName() {
  return inputRequired.elicit({ message: "What is your name?", requestedSchema: nameForm });
}

function givenName(ctx: ServerContext): string | undefined {
  return acceptedContent(ctx.mcpReq.inputResponses, "user_name", nameForm)?.name;
}

function sample(prompt: string) {
  return inputRequired.createMessage({
    messages: [{ role: "user", content: { type: "text", text: prompt } }],
    maxTokens: 100,
  });
}

function sampledText(ctx: ServerContext, key: string): string | undefined {
  const answer = inputResponse(ctx.mcpReq.inputResponses, key);
  if (answer.kind !== "sampling") return undefined;
  const [content] = [answer.result.content].flat();
  return content?.type === "text" ? content.text : "";
}

function givenRoots(ctx: ServerContext): string[] | undefined {
  const answer = inputResponse(ctx.mcpReq.inputResponses, "client_roots");
  return answer.kind === "roots" ? answer.roots.map((root) => root.uri) : undefined;
}
