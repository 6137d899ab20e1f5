export { type Command, type CommandDefinition, defineCommand, type Effects } from "./command/command.ts";
export { audio, type Content, type ContentBlock, content, image, link, resource, text } from "./command/content.ts";
export type { CommandContext, CommandLog, ProgressReport } from "./command/context.ts";
export { type JsonSchema, jsonSchema } from "./command/schema.ts";
export { defineConfig, type ServerHook, type UserConfig } from "./config.ts";
export { CommandError, Declined } from "./errors.ts";
