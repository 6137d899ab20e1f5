import { thisProgram } from "../program/program.ts";

/** The streams of a server on stdio, as far as the note depends on them. */
interface NoteStreams {
  readonly stdin: { readonly isTTY?: boolean };
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown };
}

/**
 * Tells a person who started a stdio server in a terminal what it waits for and how to try it. Prints nothing where a
 * host has started the server: its stdin is a pipe.
 */
export function printWaitingNote({ stdin, stderr }: NoteStreams, isWrap: boolean): void {
  if (stdin.isTTY !== true || stderr.isTTY !== true) return;
  const { name } = thisProgram;
  const how = isWrap
    ? `  Try it in another terminal: ${name} tools '${name} wrap …'
  Wrap your hosts' servers:   ${name} setup --wrap
`
    : `  Try it in another terminal, in this folder and with the same flags:
    ${name} tools .
    ${name} call . <tool> key=value
  Add it to your MCP hosts: ${name} setup
  Serve it over HTTP:       ${name} serve --http
`;
  stderr.write(`Waiting for an MCP client on standard input. Ctrl-C stops the server.\n${how}`);
}
