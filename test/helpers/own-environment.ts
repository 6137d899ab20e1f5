import { AsyncLocalStorage } from "node:async_hooks";
import { syncBuiltinESMExports } from "node:module";
import { Server, type Socket } from "node:net";

/**
 * Gives code that would run in a process of its own its own `process.env`, also where that is imported by name from
 * `node:process`.
 */

export type OwnEnvironment = Record<string, string | undefined>;

const environments = new AsyncLocalStorage<OwnEnvironment>();
const ofTest = process.env;
const environment = () => environments.getStore() ?? ofTest;

process.env = new Proxy(ofTest, {
  get: (_, name) => Reflect.get(environment(), name),
  set: (_, name, value) => Reflect.set(environment(), name, value),
  has: (_, name) => Reflect.has(environment(), name),
  deleteProperty: (_, name) => Reflect.deleteProperty(environment(), name),
  ownKeys: () => Reflect.ownKeys(environment()),
  getOwnPropertyDescriptor: (_, name) => Reflect.getOwnPropertyDescriptor(environment(), name),
  defineProperty: (_, name, descriptor) => Reflect.defineProperty(environment(), name, descriptor),
});
syncBuiltinESMExports();

// What a socket reads would belong to nobody, since Node makes an accepted socket outside of every context.
const emit = Server.prototype.emit;
Server.prototype.emit = function (this: Server, event: string, ...parts: unknown[]) {
  if (event === "connection" && environments.getStore() !== undefined) bindToContext(parts[0] as Socket);
  return Reflect.apply(emit, this, [event, ...parts]) as boolean;
};

function bindToContext(socket: Socket): void {
  const inContext = AsyncLocalStorage.snapshot();
  const emitOnSocket = socket.emit.bind(socket) as (event: string | symbol, ...parts: unknown[]) => boolean;
  Object.assign(socket, {
    emit: (event: string | symbol, ...parts: unknown[]) => inContext(() => emitOnSocket(event, ...parts)),
  });
}

/** Runs `work`, and everything that it starts, with these variables. */
export function withEnvironment<T>(env: OwnEnvironment, work: () => T): T {
  return environments.run(env, work);
}
