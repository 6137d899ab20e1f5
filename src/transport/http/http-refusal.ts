import { RpcCode, requestErrors } from "../../errors.ts";

interface RefusalFacts {
  /** As JSON-RPC has it. */
  readonly code?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer below the protocol: wrong door, wrong host, wrong token. */
export class HttpRefusal extends Error {
  readonly status: number;
  readonly code: number;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(status: number, message: string, { code, headers }: RefusalFacts = {}) {
    super(message);
    this.status = status;
    this.code = code ?? (status === 503 ? RpcCode.Internal : requestErrors.request.code);
    this.headers = headers;
  }
}
