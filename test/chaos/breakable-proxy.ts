import { connect, createServer, type Socket } from "node:net";

/** How a proxy fails: `refuse` closes every connection and accepts none; `freeze` keeps them open and delivers nothing. */
export type Failure = "refuse" | "freeze";

export interface BreakableProxy {
  readonly port: number;
  break(failure: Failure): void;
  /** Accepts connections again, and delivers what was sent to a frozen proxy. */
  repair(): void;
  close(): Promise<void>;
}

/** A TCP proxy on loopback to a port of this machine. */
export async function openBreakableProxy(targetPort: number): Promise<BreakableProxy> {
  const sockets = new Set<Socket>();
  let failure: Failure | undefined;
  const server = createServer((client) => {
    if (failure === "refuse") return void client.destroy();
    const target = connect(targetPort, "127.0.0.1");
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on("data", (data) => void to.write(data));
      if (failure === "freeze") from.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    break(how) {
      failure = how;
      for (const socket of sockets) how === "refuse" ? socket.destroy() : socket.pause();
    },
    repair() {
      failure = undefined;
      for (const socket of sockets) socket.resume();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
