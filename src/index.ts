export { type Command, type CommandDefinition, type Completer, defineCommand, type Effects } from "./command/command.ts";
export { audio, type Content, type ContentBlock, content, image, link, resource, text } from "./command/content.ts";
export type { CommandContext, CommandLog, ProgressReport } from "./command/context.ts";
export { type JsonSchema, jsonSchema } from "./command/schema.ts";
export { type Completion, type CompletionRequest, complete } from "./completion/complete.ts";
export { filterCompletions } from "./completion/filter.ts";
export { type Resolved, resolveContext, resolveReference } from "./completion/references.ts";
export { defineConfig, type ServerHook, type UserConfig } from "./config.ts";
export { CommandError, Declined } from "./errors.ts";
