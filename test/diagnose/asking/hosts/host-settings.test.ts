import { expect, test } from "vitest";
import { hostsKnown } from "../../../../src/diagnose/asking/hosts/host-settings.ts";
import { knownHosts } from "../../../../src/host/profiles.ts";

test("every known host has notes, and a setting has a source", () => {
  expect(hostsKnown.slice(0, knownHosts.length).map(({ notes }) => notes.name)).toEqual(
    knownHosts.map(({ name }) => name),
  );
  expect(hostsKnown.filter(({ notes }) => notes.source === "nothing is known").map(({ notes }) => notes.name)).toEqual([
    "factory-cli",
    "cursor-vscode",
  ]);
  for (const { notes, profile } of hostsKnown) {
    // The profiles and the notes agree on what progress does.
    expect(profile.limits.stdio.isExtended, notes.name).toBe(notes.progress === "extends");
  }
});
