import type { Check } from "../../check.ts";
import { check as declared } from "./declared.ts";
import { check as emptyPrefix } from "./empty-prefix.ts";
import { check as hostilePartials } from "./hostile-partials.ts";
import { check as unknownNames } from "./unknown-names.ts";
import { check as values } from "./values.ts";

export const completion: readonly Check[] = [declared, values, emptyPrefix, unknownNames, hostilePartials];
