import { type McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { embeddedResource, mixedContentResource, pixelPng } from "../fixtures.ts";

const contents = [
  { uri: "test://static-text", mimeType: "text/plain", text: "This is the content of the static text resource." },
  { uri: "test://static-binary", mimeType: "image/png", blob: pixelPng },
  { uri: "test://watched-resource", mimeType: "text/plain", text: "Clients may subscribe to this resource." },
  embeddedResource,
  mixedContentResource,
];

export function registerResources(server: McpServer, era: "legacy" | "modern"): void {
  for (const body of contents) {
    const name = body.uri.replace("test://", "");
    server.registerResource(name, body.uri, { mimeType: body.mimeType }, () => ({ contents: [body] }));
  }
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { mimeType: "application/json" }, (uri, { id }) => ({
    contents: [
      {
        uri: uri.href,
        mimeType: "application/json",
        text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
      },
    ],
  }));
  if (era === "legacy") acceptSubscriptions(server);
}

/**
 * Accepted and forgotten: nothing here ever changes. Since 2026-07-28 there are subscriptions/listen streams instead.
 */
function acceptSubscriptions(server: McpServer): void {
  server.server.registerCapabilities({ resources: { subscribe: true } });
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));
}
