import { connect, createServer, type Socket } from "node:net";
import { cleanUp } from "./home.ts";

/** A way to a server on which the answer to one statement can be lost, after that was carried out. */
export interface CutConnection {
  readonly port: number;
  /** The next answer to a statement of this name is lost, and the connection with it. */
  loseAnswerTo(statement: string): void;
  /** The same, and nobody gets through from then on … */
  cutOffAt(statement: string): void;
  /** … until this is called. */
  heal(): void;
  /** The next statement of this name stays on its way, and its connection is lost; what is returned lets it arrive. */
  delay(statement: string): () => void;
  /** How many answers were lost. */
  readonly lost: number;
  /** How often a statement of this name was sent. */
  sent(statement: string): number;
}

/** `change` is what becomes of whatever the server says. */
export async function openCutConnection(
  port: number,
  change: (said: Buffer) => Buffer = (said) => said,
): Promise<CutConnection> {
  let awaited: { readonly statement: string; readonly fate: "lose" | "cut off" | "delay" } | undefined;
  let isShut = false;
  let arrive = () => {};
  let lost = 0;
  const sockets = new Set<Socket>();
  const words: Buffer[] = [];
  const server = createServer((client) => {
    if (isShut) return void client.destroy();
    const upstream = connect(port, "127.0.0.1");
    let isDoomed = false;
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", end);
    }
    client.on("data", (data) => {
      words.push(data);
      // Statements are carried out by their names, which end with a NUL.
      if (awaited !== undefined && data.includes(`${awaited.statement}\0`)) {
        const { fate } = awaited;
        awaited = undefined;
        isDoomed = true;
        isShut = fate === "cut off";
        if (fate === "delay") {
          arrive = () => upstream.write(data);
          client.off("close", end);
          return void client.destroy();
        }
      }
      upstream.write(data);
    });
    upstream.on("data", (data) => {
      if (!isDoomed) return void client.write(change(data));
      lost += 1;
      end();
      if (isShut) for (const socket of sockets) socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    port: (server.address() as { port: number }).port,
    loseAnswerTo(statement) {
      awaited = { statement, fate: "lose" };
    },
    cutOffAt(statement) {
      awaited = { statement, fate: "cut off" };
    },
    heal() {
      isShut = false;
    },
    delay(statement) {
      awaited = { statement, fate: "delay" };
      return () => arrive();
    },
    get lost() {
      return lost;
    },
    // Between two connections there is always a NUL.
    sent: (statement) => Buffer.concat(words).toString("latin1").split(`\0${statement}\0`).length - 1,
  };
}
