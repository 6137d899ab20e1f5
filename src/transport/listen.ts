import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import type { Caller } from "../mcp/caller.ts";
import { acknowledgedId, type TaskListen, type TaskSubscriptions, withTaskIds } from "../mcp/subscriptions.ts";
import { EventReader, toEventText } from "../wire/sse.ts";

/**
 * Listening to tasks over HTTP. The SDK opens the stream, acknowledges, keeps it alive and closes it, but it closes one at once
 * that asks for nothing it knows. So it is asked for tool changes too, and those are left out unless the client wants them.
 */

interface Kept {
  readonly message: JSONRPCMessage;
  readonly wantsToolChanges: boolean;
}

/** The request as the SDK gets it. */
export function keptOpen({ rest }: TaskListen): Kept {
  const { params, ...message } = rest as unknown as { params: { notifications: Record<string, unknown> } };
  const wantsToolChanges = params.notifications.toolsListChanged === true;
  const notifications = { ...params.notifications, toolsListChanged: true };
  return { message: { ...message, params: { ...params, notifications } } as unknown as JSONRPCMessage, wantsToolChanges };
}

interface ListenFacts {
  readonly listen: TaskListen;
  readonly caller: Caller;
  readonly subscriptions: TaskSubscriptions;
  /** The tasks among them that are this caller's. */
  readonly taskIds: readonly string[];
  readonly wantsToolChanges: boolean;
  readonly signal: AbortSignal;
}

/** The SDK's stream with the tasks in it. */
export function withTasks(response: Response, facts: ListenFacts): Response {
  const { listen, caller, subscriptions, taskIds, wantsToolChanges, signal } = facts;
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  const over = new AbortController();
  const stop = () => over.abort();
  signal.addEventListener("abort", stop, { once: true });
  const edit = (frame: string, write: (text: string) => void) => {
    const message = toMessage(frame);
    if (message === undefined) return write(frame);
    if (isToolChange(message) && !wantsToolChanges) return;
    if (acknowledgedId(message) === undefined) return write(frame);
    write(toFrame(withTaskIds(wantsToolChanges ? message : withoutToolChanges(message), taskIds)));
    subscriptions.follow(listen, caller, taskIds, (news) => write(toFrame(news)), over.signal);
  };
  const stream = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const write = (text: string) => {
        try {
          controller.enqueue(encoder.encode(text));
        } catch {
          stop(); // The client is gone.
        }
      };
      // Each chunk of the SDK's holds whole events.
      for (const frame of decoder.decode(chunk, { stream: true }).split(/(?<=\n\n)/)) if (frame !== "") edit(frame, write);
    },
    flush: stop,
    cancel: stop,
  });
  return new Response(response.body?.pipeThrough(stream), { status: response.status, headers: response.headers });
}

function toMessage(frame: string): JSONRPCMessage | undefined {
  const [event] = new EventReader().push(Buffer.from(frame));
  return event === undefined || event.data === "" ? undefined : (JSON.parse(event.data) as JSONRPCMessage);
}

function toFrame(message: JSONRPCMessage): string {
  return toEventText(JSON.stringify(message));
}

function isToolChange(message: JSONRPCMessage): boolean {
  return "method" in message && message.method === "notifications/tools/list_changed";
}

function withoutToolChanges(acknowledgement: JSONRPCMessage): JSONRPCMessage {
  const { params, ...message } = acknowledgement as unknown as { params: { notifications: Record<string, unknown> } };
  const { toolsListChanged: _unwanted, ...notifications } = params.notifications;
  return { ...message, params: { ...params, notifications } } as unknown as JSONRPCMessage;
}
