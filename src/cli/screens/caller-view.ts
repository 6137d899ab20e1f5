import type { Caller } from "../../command/caller.ts";
import { clean, type Terminal } from "../terminal.ts";

interface CallerOutput {
  readonly terminal: Terminal;
  readonly isJson: boolean;
}

/** Prints a caller: one line a fact, or JSON. */
export function printCaller(caller: Caller, { terminal, isJson }: CallerOutput): void {
  const { kind, id, name, client, scopes, groups } = caller;
  const facts = { kind, id, ...(name !== undefined && { name }), ...(client !== undefined && { client }) };
  if (isJson) return void terminal.print(`${JSON.stringify({ ...facts, scopes, groups }, null, 2)}\n`);
  const noScopes = kind === "local" ? "every right" : "none";
  const lines = Object.entries({
    ...facts,
    scopes: scopes.length === 0 ? noScopes : scopes.join(", "),
    groups: groups.length === 0 ? "none" : groups.join(", "),
  });
  for (const [label, value] of lines) terminal.print(`${label.padEnd(8)}${clean(value)}\n`);
}
