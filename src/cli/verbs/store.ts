import { files, flag } from "../completion/grammar.ts";
import { jsonFlag } from "../flags.ts";
import type { Verb, VerbGroup } from "../verb.ts";

type StoreVerb = keyof typeof import("../store/manage-stores.ts").subverbs;

const which = flag("--store <store>", "this one; default: the one that the settings name", { values: files });

const run =
  (name: StoreVerb): Verb["run"] =>
  async (typed) => {
    const { subverbs } = await import("../store/manage-stores.ts");
    return await subverbs[name](typed);
  };

export const verb: VerbGroup = {
  verbs: {
    check: {
      line: "check [--store <store>] [--json]",
      description: "what is in it, and whether all is well with it; changes nothing",
      flags: [which, jsonFlag],
      run: run("check"),
    },
    migrate: {
      line: "migrate [--store <store>] [--yes] [--undo]",
      description: "bring its schema up to date, and give this home the rows that no home owns yet",
      flags: [
        which,
        flag("--yes", "do not ask before rows are given to this home, or given back"),
        flag("--undo", "give back the rows that this home took"),
      ],
      run: run("migrate"),
    },
    copy: {
      line: "copy --from <store> --to <store>",
      description: "copy all that is in one store into an empty one; goes on where it was interrupted",
      flags: [
        flag("--from <store>", "the store that stays as it is", { values: files }),
        flag("--to <store>", "an empty one, or none yet", { values: files }),
      ],
      run: run("copy"),
    },
  },
  notes: `
A store is the path of an SQLite file, or postgres://user@host/database; a password may also come from PGPASSWORD.
`,
};
