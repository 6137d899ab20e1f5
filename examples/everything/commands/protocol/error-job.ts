import { ProtocolError } from "@modelcontextprotocol/server";
import { defineCommand } from "meanwhile";

export default defineCommand({
  summary: "Ends in an error of the protocol instead of a result",
  long: true,
  run: () => {
    throw new ProtocolError(-32603, "This job ends in a protocol error");
  },
});
