import { content, defineCommand, image } from "meanwhile";
import { pixelPng } from "../../fixtures.ts";

export default defineCommand({
  summary: "Answers with a picture",
  effects: "read",
  run: () => content(image(pixelPng, "image/png")),
});
