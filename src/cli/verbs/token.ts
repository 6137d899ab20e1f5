import { Exit } from "../../errors.ts";
import { openHome } from "../../paths.ts";
import type { Verb } from "../verb.ts";

export const verb: Verb = {
  description: "Print the token that makes an HTTP caller the local user: Authorization: Bearer <token>",
  flags: [],
  async run({ terminal, context }) {
    const { readToken } = await import("../../runtime/home-token.ts");
    terminal.print(`${readToken(openHome(context.env))}\n`);
    return Exit.Ok;
  },
};
