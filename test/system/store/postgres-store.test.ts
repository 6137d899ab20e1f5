import { test } from "vitest";
import { exerciseStore } from "../../store-suite/store-suite.ts";
import { postgresStores } from "../../helpers/postgres.ts";

exerciseStore(test, postgresStores());
