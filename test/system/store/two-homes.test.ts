import { serverPort, urlOf } from "../../helpers/postgres.ts";
import { testTwoHomes } from "../../helpers/two-homes.ts";

testTwoHomes(async () => urlOf(await serverPort()));
