import { expect, test } from "vitest";
import { app } from "../helpers/server-app.ts";
import { complaintsOf, resolutions } from "../helpers/strict-types.ts";

test.for(resolutions)(
  "An app with a server inside, and every example, has its types without a cast: %s",
  async ([module, moduleResolution]) => {
    const options = { folders: ["examples"], module, moduleResolution };
    expect(await complaintsOf({ "app.ts": app }, options)).toEqual([]);
  },
);

test("Ours do without the browser's types; where these are missing it is others' that complain", async () => {
  const [[module, moduleResolution]] = resolutions;
  const control = `
    import "@modelcontextprotocol/sdk/server/mcp.js";
    import { durable } from "meanwhile";
    durable({ connect: 1 });
  `;
  const lib = ["es2024", "esnext.disposable"];
  const complaints = await complaintsOf({ "control.ts": control }, { module, moduleResolution, lib });
  expect(complaints).toContainEqual(expect.stringMatching(/^control\.ts\(4,/));
  expect(complaints).toContainEqual(expect.stringContaining("node_modules/@modelcontextprotocol/sdk/"));
  expect(complaints).not.toContainEqual(expect.stringContaining("node_modules/meanwhile/"));
});
