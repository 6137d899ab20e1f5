import { onTestFinished } from "vitest";
import type { StreamMark } from "../../src/client/connection/http-link.ts";
import { openUpstreamLink } from "../../src/gateway/open-link.ts";
import type { LinkOptions, UpstreamAddress, UpstreamLink, UrlAddress } from "../../src/gateway/upstream-link.ts";
import type { Id } from "../../src/wire/in-flight.ts";
import { fieldsOf, type Json } from "../../src/wire/json.ts";
import type { Message } from "../../src/wire/message.ts";
import { Peer } from "../../src/wire/peer.ts";
import { ConnectionError } from "../../src/wire/peer-errors.ts";

/** A conversation with an upstream over a link, and all that came on it. */
export async function talk(address: UpstreamAddress, options: LinkOptions & { readonly isMute?: boolean } = {}) {
  const heard: { message: Message; about: Id | undefined }[] = [];
  const notices: string[] = [];
  const stderr: string[] = [];
  const marks = new Map<Id, StreamMark>();
  let renewals = 0;
  const peer = await Peer.open(
    (events) =>
      openUpstreamLink(
        address,
        {
          onMessage: (message, about) => {
            heard.push({ message, about });
            events.onMessage(message);
          },
          onClose: events.onClose,
          onStderr: (text) => void stderr.push(text),
          onNotice: (sentence) => void notices.push(sentence),
          onMark: (id, mark) => void marks.set(id, mark),
          onRenewed: () => void renewals++,
        },
        options,
      ),
    {
      onNotification: () => undefined,
      onRequest: async (method) => {
        if (options.isMute === true) return await new Promise(() => undefined);
        return method === "elicitation/create" ? { action: "accept", content: { name: "Ada" } } : undefined;
      },
    },
  );
  onTestFinished(() => peer.close());
  const link = peer.link as UpstreamLink;
  const begin = async (revision = "2025-11-25") => {
    const params = {
      protocolVersion: revision,
      capabilities: { elicitation: {} },
      clientInfo: { name: "t", version: "1" },
    };
    await peer.request("initialize", params);
    if (link.kind !== "url") await peer.notify("notifications/initialized");
    await link.begin(revision);
  };
  const call = async (name: string, args: Json = {}): Promise<string | undefined> => {
    const result = fieldsOf(await peer.request("tools/call", { name, arguments: args }));
    return (result.content as { text: string }[] | undefined)?.[0]?.text;
  };
  return { peer, link, begin, call, heard, notices, stderr, marks, renewals: () => renewals };
}

export const at = (url: string, more: Partial<UrlAddress> = {}): UrlAddress => ({
  kind: "url",
  url,
  headers: {},
  transport: "http",
  authorizer: undefined,
  ...more,
});

/** How a promise fails: every failure of a link is one of these. */
export async function failureOf(promise: Promise<unknown>): Promise<ConnectionError> {
  const error = await promise.then(
    () => "nothing failed",
    (thrown: unknown) => thrown,
  );
  if (error instanceof ConnectionError) return error;
  throw new Error(`expected a ConnectionError, not ${String(error)}`);
}
