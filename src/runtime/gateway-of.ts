import type { Gateway } from "../gateway/gateway.ts";
import type { Settings } from "../settings/settings.ts";
import type { GatewayParts } from "./open-gateway.ts";

/** The servers that stand behind this one. Where there are none, as mostly, nothing of that is even loaded. */
export async function gatewayOf(settings: Settings, parts: GatewayParts): Promise<Gateway | undefined> {
  if (Object.keys({ ...settings.upstreams, ...settings.leftOut }).length === 0) return undefined;
  const { createGateway } = await import("./open-gateway.ts");
  return createGateway(settings, parts);
}
