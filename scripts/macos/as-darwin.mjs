// Our own code takes this machine for a Mac; Node and packages, which load what was built for it, do not.
const { platform } = process;
Object.defineProperty(process, "platform", {
  configurable: true,
  enumerable: true,
  get() {
    const caller = new Error("").stack?.split("\n")[2] ?? "";
    return caller.includes("node_modules") || caller.includes("node:") ? platform : "darwin";
  },
});
