import { ProtocolError, requestErrors } from "../errors.ts";
import { isObject, type Json } from "../wire/json.ts";

/** What a client has sent as params, checked where it is read. */

export function badParams(text: string, data?: unknown): ProtocolError {
  return new ProtocolError(requestErrors.params.code, text, data);
}

export function textParam(params: Json, field: string): string {
  const value = params[field];
  if (typeof value !== "string") throw badParams(`\`${field}\` must be a text.`);
  return value;
}

export function objectParam(params: Json, field: string): Json {
  const value = params[field];
  if (!isObject(value)) throw badParams(`\`${field}\` must be an object.`);
  return value;
}
