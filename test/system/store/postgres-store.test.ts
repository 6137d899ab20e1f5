import { test } from "vitest";
import { postgresStores } from "../../helpers/postgres.ts";
import { exerciseStore } from "../../store-suite/store-suite.ts";

exerciseStore(test, postgresStores());
