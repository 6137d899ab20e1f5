import { expect, test } from "vitest";
import { withoutSecrets } from "../../../src/cli/screens/tasks-view.ts";

test("`tasks show` blanks headers and what is named as a secret, and nothing else", () => {
  const input = {
    url: "https://example.org/mcp",
    headers: { Authorization: "Bearer abc", "X-Anything": "abc" },
    target: { otherHeaders: { Cookie: "abc" }, kind: "http" },
    list: [{ api_key: "abc", page: 1 }],
    accessToken: "abc",
    tokens: 12,
    password: null,
    keyword: "kept",
  };
  expect(withoutSecrets(input)).toEqual({
    url: "https://example.org/mcp",
    headers: { Authorization: "•••", "X-Anything": "•••" },
    target: { otherHeaders: { Cookie: "•••" }, kind: "http" },
    list: [{ api_key: "•••", page: 1 }],
    accessToken: "•••",
    tokens: 12,
    password: null,
    keyword: "kept",
  });
});
