/**
 * What a new project installs beside Meanwhile: the versions that this one was built and tested with. The published
 * package.json names no tools, so they stand here.
 */
export const dependencyVersions = { "@types/node": "24.19.2", typescript: "7.0.2", zod: "4.6.7" } as const;

/** The oldest Node that runs it. */
export const oldestNode = ">=22.18";
