export type { Caller } from "./command/caller.ts";
export {
  type Command,
  type CommandDefinition,
  type Completer,
  defineCommand,
  type Effects,
} from "./command/command.ts";
export { audio, type Content, type ContentBlock, content, image, link, resource, text } from "./command/content.ts";
export type { CallFacts, CommandContext, CommandLog, Origin, ProgressReport } from "./command/context.ts";
export { type JsonSchema, jsonSchema } from "./command/schema.ts";
export type { Completion, CompletionOptions, CompletionRequest } from "./completion/complete.ts";
export { filterCompletions } from "./completion/filter.ts";
export { complete } from "./completion/lazily.ts";
export { type Resolved, resolveContext, resolveReference } from "./completion/references.ts";
export { defineConfig, type ServerHook, type UserConfig } from "./config.ts";
export { listProgress, type ProgressOptions, progressOf } from "./embed/live-progress.ts";
export { CommandError, Declined } from "./errors.ts";
export { changeableBy, checkConfig } from "./settings/check-config.ts";
export type { TokenAnswer, TokenProgress } from "./task/token-progress.ts";
