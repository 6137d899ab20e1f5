import { TakenBack, withoutReservedMeta } from "../command/foreign.ts";
import { CommandError, ProtocolError, RpcCode } from "../errors.ts";
import { askOutside, type GuestClient } from "../mcp/guest-client.ts";
import type { ClientConnection } from "../mcp/request.ts";
import { toRpcError } from "../mcp/router.ts";
import type { Id } from "../wire/in-flight.ts";
import { fieldsOf, type Json } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";

/** A question to a client ends when the upstream says so: it has limits of its own. */
const askLimitMs = 24 * 60 * 60 * 1000;

/** What a client has to have declared before it may be asked without a call of its own. */
const declared: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

const nobody = "Nobody is there who can be asked that, or it is not clear who: several calls share this server.";

interface Asking {
  readonly id: Id;
  readonly method: string;
  readonly params: Json;
  /** Whose request it works on; undefined where that is not clear. */
  readonly whom: GuestClient | undefined;
  /** Whose it is alone. */
  readonly owner: ClientConnection | undefined;
}

/** What an upstream asks of clients while it works. */
export class UpstreamAsks {
  readonly #open = new Map<Id, AbortController>();
  readonly #reply: (answer: Message) => void;

  constructor(reply: (answer: Message) => void) {
    this.#reply = reply;
  }

  async ask({ id, method, params, ...asking }: Asking): Promise<void> {
    if (method === "ping") return void this.#reply({ id, result: {} });
    const asked = new AbortController();
    this.#open.set(id, asked);
    try {
      const question = [method, withoutReservedMeta(params), { signal: asked.signal, timeoutMs: askLimitMs }] as const;
      const { whom } = asking;
      const owner = ableTo(method, asking.owner);
      const askOwner = async () => {
        if (owner === undefined) throw new ProtocolError(RpcCode.Method, nobody);
        return await askOutside(owner, ...question);
      };
      const askCaller = async (client: GuestClient) =>
        await client.ask(...question).catch(async (error: unknown) => {
          // Over a pipe nobody can tell whether the running call asks. Roots outlive it: they are the session's.
          const mayAskOwner = method === "roots/list" && owner?.closed.aborted === false && !asked.signal.aborted;
          if (!mayAskOwner) throw error;
          return await askOwner();
        });
      const result = await (whom === undefined ? askOwner() : askCaller(whom));
      this.#reply({ id, result: result as Json });
    } catch (error) {
      // One that was taken back wants no answer.
      if (!(asked.signal.reason instanceof TakenBack)) this.#refuse(id, method, error);
    } finally {
      this.#open.delete(id);
    }
  }

  takeBack(id: Id): void {
    this.#open.get(id)?.abort(new TakenBack());
  }

  takeAllBack(): void {
    for (const asked of this.#open.values()) asked.abort(new TakenBack());
  }

  #refuse(id: Id, method: string, error: unknown): void {
    const isNo = error instanceof CommandError;
    // What could not be put to a person, no person has agreed to.
    if (isNo && method === "elicitation/create") return void this.#reply({ id, result: { action: "cancel" } });
    this.#reply({ id, error: isNo ? { code: RpcCode.Internal, message: error.message } : toRpcError(error) });
  }
}

/** The owner, where it has said that it can be asked this. */
function ableTo(method: string, owner: ClientConnection | undefined): ClientConnection | undefined {
  const capability = declared[method];
  return capability !== undefined && fieldsOf(owner?.client.capabilities)[capability] !== undefined ? owner : undefined;
}
