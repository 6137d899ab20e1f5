import { expect, test } from "vitest";
import { mayNameAddress } from "../../src/auth/issuer-keys.ts";

const remote = "https://id.example.com/.well-known/openid-configuration";
const local = "http://127.0.0.1:8080/.well-known/openid-configuration";

test.each([
  [remote, "https://id.example.com/keys", true],
  [remote, "https://keys.example.net/keys?v=1", true],
  [remote, "http://id.example.com/keys", false],
  [remote, "https://127.0.0.1/keys", false],
  [remote, "http://127.0.0.1:8080/keys", false],
  [remote, "https://localhost/keys", false],
  [remote, "https://[::1]/keys", false],
  [remote, "https://localhost./keys", false],
  [remote, "https://[::ffff:127.0.0.1]/keys", false],
  [remote, "https://0.0.0.0/keys", false],
  [remote, "https://169.254.169.254/keys", false],
  [remote, "https://10.0.0.1/keys", false],
  [remote, "https://2130706433/keys", false],
  [remote, "https://0x7f.1/keys", false],
  [remote, "https://me:secret@id.example.com/keys", false],
  [remote, "file:///etc/passwd", false],
  [local, "http://127.0.0.1:8080/keys", true],
  [local, "http://localhost:9090/keys", true],
  [local, "https://id.example.com/keys", true],
  [local, "http://10.0.0.1/keys", false],
])("the metadata at %s may name %s: %s", (place, address, expected) => {
  expect(mayNameAddress(new URL(place), address)).toBe(expected);
});
