import type { ForeignToolOptions } from "../command/foreign.ts";
import { closest } from "../command/suggest.ts";
import { type EmbeddedServer, embedServer } from "./create-server.ts";
import { type ConnectableServer, refuseUnusable, type ServerFactory } from "./server-host.ts";
import { checkOptions, type SharedOptions } from "./server-options.ts";

/** What is said of a server that was made with an SDK, beside what it says itself. */
export interface DurableOptions extends Omit<SharedOptions, "toolPrefix" | "prompts" | "instructions"> {
  /** What is said of single tools, by their names. */
  readonly tools?: Readonly<Record<string, ForeignToolOptions>>;
}

/**
 * Gives a server every way to take its time: what `createServer` returns, with the server's own tools, resources and
 * prompts. An SDK's server is connected once, so everybody shares it; a function that makes one is called for each
 * session.
 */
export function durable(
  server: ConnectableServer | ServerFactory<ConnectableServer>,
  options: DurableOptions = {},
): EmbeddedServer {
  checkOptions("durable", options, {}, { tools: { check: isObject, expected: "an object of options by tool" } });
  const { tools = {}, ...shared } = options;
  for (const [name, said] of Object.entries(tools)) checkTool(name, said);
  if (typeof server !== "function") refuseUnusable(server);
  return embedServer({ ...shared, prompts: false, folders: [], source: undefined }, async ({ log }) => {
    const [{ openGuestParts }, { followUpNames }] = await Promise.all([
      import("./guest-parts.ts"),
      import("../mcp/generation/follow-up-names.ts"),
    ]);
    const taken = followUpNames({ followUpTools: options.followUpTools ?? true, toolPrefix: "" });
    return await openGuestParts(server, { tools, taken, log });
  });
}

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
const isBoolean = (value: unknown) => typeof value === "boolean";

const toolFields: Readonly<
  Record<keyof ForeignToolOptions, { readonly check: (value: unknown) => boolean; readonly expected: string }>
> = {
  long: { check: isBoolean, expected: "true or false" },
  asksFirst: { check: isBoolean, expected: "true or false" },
  taskSupport: {
    check: (value) => value === "optional" || value === "required" || value === "forbidden",
    expected: '"optional", "required" or "forbidden"',
  },
  rerun: { check: isBoolean, expected: "true or false" },
  estimate: {
    check: (value) => typeof value === "function",
    expected: "a function (input) => seconds, or => { work }",
  },
  timeout: {
    check: (value) => typeof value === "number" && value > 0 && Number.isFinite(value),
    expected: "a positive number of seconds",
  },
  dedupe: { check: isBoolean, expected: "true or false" },
};

function checkTool(tool: string, said: unknown): void {
  if (!isObject(said)) throw new TypeError(`durable: \`tools.${tool}\` must be an object of options`);
  for (const [name, value] of Object.entries(said as object)) {
    const field = Object.hasOwn(toolFields, name) ? toolFields[name as keyof ForeignToolOptions] : undefined;
    const known = Object.keys(toolFields);
    if (field === undefined) {
      const guess = closest(name, known);
      throw new TypeError(
        `durable: \`tools.${tool}.${name}\` is not an option; ${guess === undefined ? `there are ${known.join(", ")}` : `did you mean \`${guess}\`?`}`,
      );
    }
    if (value !== undefined && !field.check(value))
      throw new TypeError(`durable: \`tools.${tool}.${name}\` must be ${field.expected}`);
  }
}
