import path from "node:path";
import Database from "better-sqlite3";
import { temporaryFolder } from "../helpers/home.ts";
import { testMovedCallers } from "../helpers/moved-callers.ts";

testMovedCallers("SQLite", { from: 10, to: 11 }, async () => {
  const file = path.join(temporaryFolder(), "tasks.db");
  return {
    store: file,
    async toEarlier() {
      const db = new Database(file);
      db.exec("drop table api_keys; pragma user_version = 10");
      db.close();
    },
  };
});
