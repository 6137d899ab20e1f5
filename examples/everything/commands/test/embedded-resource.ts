import { content, defineCommand, resource } from "meanwhile";
import { embeddedResource } from "../../fixtures.ts";

export default defineCommand({
  summary: "Answers with a resource, its body inside",
  effects: "read",
  run: () => content(resource(embeddedResource)),
});
