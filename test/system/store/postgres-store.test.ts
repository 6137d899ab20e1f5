import { test } from "vitest";
import { exerciseStore } from "../../../src/testing/store-suite.ts";
import { postgresStores } from "../../helpers/postgres.ts";

exerciseStore(test, postgresStores());
