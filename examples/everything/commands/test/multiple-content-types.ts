import { content, defineCommand, image, resource } from "meanwhile";
import { mixedContentResource, pixelPng } from "../../fixtures.ts";

export default defineCommand({
  summary: "Answers with text, a picture and a resource",
  effects: "read",
  run: () => content("Multiple content types test:", image(pixelPng, "image/png"), resource(mixedContentResource)),
});
