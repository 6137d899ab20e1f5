export { Cancelled, RequestError, TimedOut, UsageError } from "../errors.ts";
export {
  type Answer,
  type CallerInfo,
  type CallOptions,
  type Client,
  type CommandTarget,
  type ConnectOptions,
  connect,
  type FollowOptions,
  type Progress,
  type Question,
  type ServerFacts,
  type SocketTarget,
  type Target,
  type TaskHandle,
  type TaskPage,
  type TaskState,
  type TaskStatus,
  type Tool,
  type ToolResult,
  type UrlTarget,
} from "./client.ts";
export { ConnectionError, InputRequired, ServerError } from "./client-errors.ts";
export { Detach } from "./detach.ts";
