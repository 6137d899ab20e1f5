import { homeAt } from "../../paths.ts";
import { flag, folders, operand } from "../completion/grammar.ts";
import type { Verb } from "../verb.ts";

export const verb: Verb = {
  description: "Make a project: one command, its test, and what npm and an editor need",
  flags: [
    flag("--package", "one to publish: a program under its own name, with its commands compiled"),
    flag("--name <name>", "what the package is called (default: as the folder)"),
  ],
  operands: [operand("[folder]", folders, "where; made if it is not there (default: here)")],
  notes: "\nNothing that is there is changed, nothing is fetched, and no code is run.\n",
  async run({ operands, options, terminal, context }) {
    const { initProject } = await import("../init/init-project.ts");
    const request = {
      folder: operands[0],
      name: options.name as string | undefined,
      isPackage: options.package === true,
    };
    return initProject(request, { home: homeAt(context.env), terminal });
  },
};
