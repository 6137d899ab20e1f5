import { testMovedCallers } from "../../helpers/moved-callers.ts";
import { adminOf, newSchema, serverPort, urlOf } from "../../helpers/postgres.ts";

const admin = adminOf(serverPort);

testMovedCallers("PostgreSQL", { from: 7, to: 8 }, async () => {
  const schema = newSchema();
  return {
    store: urlOf(await serverPort(), schema),
    async toEarlier() {
      await (await admin()).query(`drop table ${schema}.api_keys; update ${schema}.meanwhile_schema set version = 7`);
    },
  };
});
