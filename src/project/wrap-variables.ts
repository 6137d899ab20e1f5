import { thisProgram } from "../program/program.ts";

/**
 * What may be said to `wrap` in variables, where its command line is not the place: everybody on the machine can read
 * that, and some hosts put variables of their own into it.
 */
export interface WrapVariables {
  readonly url: string | undefined;
  /** Whole headers: `Authorization: Bearer …`. */
  readonly headers: readonly string[];
}

/** The address of the server. */
export const urlVariable = () => thisProgram.variable("URL");

/** A header: `NAME_1`, `NAME_2` and so on. */
export const headerVariable = (number: number) => `${thisProgram.variable("HEADER_")}${number}`;

export function isHeaderVariable(name: string): boolean {
  const prefix = thisProgram.variable("HEADER_");
  return name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length));
}

export function readWrapVariables(env: Readonly<Record<string, string | undefined>>): WrapVariables {
  const headers = Object.entries(env).flatMap(([name, value]) => (isHeaderVariable(name) && value ? [value] : []));
  return { url: env[urlVariable()] || undefined, headers };
}
