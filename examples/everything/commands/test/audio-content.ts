import { audio, content, defineCommand } from "meanwhile";
import { silenceWav } from "../../fixtures.ts";

export default defineCommand({
  summary: "Answers with a sound",
  effects: "read",
  run: () => content(audio(silenceWav, "audio/wav")),
});
