import type { Programs } from "../../src/system/programs.ts";

/** Programs that print what was recorded, and nothing about anything else; `asked` is what they were asked. */
export function answering(recorded: Readonly<Record<string, string>>): Programs & { readonly asked: string[] } {
  const asked: string[] = [];
  const ask = (program: string, words: readonly string[]) => {
    const call = [program, ...words].join(" ");
    asked.push(call);
    return recorded[call] ?? "";
  };
  return { asked, ask, askLater: async (program, words) => ask(program, words) };
}
