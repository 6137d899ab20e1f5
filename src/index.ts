export type { AppCaller, AppUser, ForCaller } from "./auth/app-caller.ts";
export type { Caller } from "./command/caller.ts";
export {
  type Command,
  type CommandDefinition,
  type Completer,
  defineCommand,
  type Effects,
} from "./command/command.ts";
export { audio, type Content, type ContentBlock, content, image, link, resource, text } from "./command/content.ts";
export type { CallFacts, CommandContext, CommandLog, Origin, ProgressReport, Root } from "./command/context.ts";
export type { ForeignToolOptions } from "./command/foreign.ts";
export { type JsonSchema, jsonSchema } from "./command/schema.ts";
export type { Completion, CompletionOptions, CompletionRequest } from "./completion/complete.ts";
export { filterCompletions } from "./completion/filter.ts";
export { complete } from "./completion/lazily.ts";
export { type Resolved, resolveContext, resolveReference } from "./completion/references.ts";
export { defineConfig, type ServerHook, type UserConfig } from "./config.ts";
export type { ServerCallOptions } from "./embed/call-here.ts";
export { type AuthorsCli, type CliOptions, createCli } from "./embed/create-cli.ts";
export {
  createServer,
  type EmbeddedServer,
  type NodeHttpRequest,
  type NodeHttpResponse,
  type StreamPair,
} from "./embed/create-server.ts";
export { type DurableOptions, durable } from "./embed/durable.ts";
export { listProgress, type ProgressOptions, progressOf } from "./embed/live-progress.ts";
export type { CallResult } from "./embed/result-copy.ts";
export type { ConnectableServer, LinkedTransport, ServerFactory } from "./embed/server-host.ts";
export type { AppRequest, ServerOptions } from "./embed/server-options.ts";
export type { ServerTask, ServerTaskFilter, ServerTaskPage, ServerTasks } from "./embed/server-tasks.ts";
export type { MessageTransport } from "./embed/transport-way.ts";
export { CommandError, Declined } from "./errors.ts";
export { changeableBy, checkConfig } from "./settings/check-config.ts";
export type { TokenAnswer, TokenProgress } from "./task/token-progress.ts";
