import { PassThrough } from "node:stream";
import { type DurableOptions, durable } from "../../src/embed/durable.ts";
import { cleanUp } from "./home.ts";
import { type Reached, serve } from "./mounted.ts";
import { overStreams, WireClient, type WireOptions } from "./wire.ts";

/** A server of somebody's, wrapped in this process, with a door to each transport. */
export interface Wrapped {
  readonly server: ReturnType<typeof durable>;
  /** Lines of its log. */
  readonly logged: readonly string[];
  readonly reached: Reached;
  connect(
    door: "stdio" | "http",
    options: WireOptions & { readonly headers?: Record<string, string> },
  ): Promise<WireClient>;
}

export const doors = [
  ["stdio", "2025-11-25"],
  ["http", "2025-11-25"],
  ["stdio", "2026-07-28"],
  ["http", "2026-07-28"],
] as const;

export async function openWrapped(
  given: Parameters<typeof durable>[0],
  options: DurableOptions = {},
): Promise<Wrapped> {
  const logged: string[] = [];
  const server = durable(given, { log: (line) => void logged.push(line), graceSeconds: 0, ...options });
  cleanUp(() => server.close());
  const reached = await serve(server.node);
  return {
    server,
    logged,
    reached,
    async connect(door, { headers, ...wire }) {
      if (door === "http")
        return await reached.connect(wire.revision, { ...wire, ...(headers !== undefined && { headers }) });
      const [input, output] = [new PassThrough(), new PassThrough()];
      const served = server.stdio({ input, output });
      served.catch(() => undefined);
      const link = overStreams(input, output, async () => {
        input.end();
        await served.catch(() => undefined);
      });
      cleanUp(() => link.close());
      return await new WireClient(link, wire).begin();
    },
  };
}
