import { content, defineCommand, jsonSchema } from "meanwhile";

const titled = ["First", "Second", "Third"].map((title, index) => ({
  const: `value${index + 1}`,
  title: `${title} Option`,
}));
const options = ["option1", "option2", "option3"];

/** The five ways to write a choice; a schema library writes at most two of them. */
const form = jsonSchema({
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: options },
    titledSingle: { type: "string", oneOf: titled },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: options } },
    titledMulti: { type: "array", items: { anyOf: titled } },
  },
});

export default defineCommand({
  summary: "Asks with a form of choices, one and many, with titles and without",
  effects: "read",
  run: async (_input, task) =>
    content(`Elicitation completed: ${JSON.stringify(await task.ask("Please choose", form))}`),
});
