import path from "node:path";
import { temporaryFolder } from "../helpers/home.ts";
import { testTwoHomes } from "../helpers/two-homes.ts";

testTwoHomes(async () => path.join(temporaryFolder(), "tasks.db"));
