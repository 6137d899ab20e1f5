// The published manifest names the Node that it needs, no Node binary and none of the repository's own tools.
//   strip    before packing: keep the original in another file, write the published one
//   restore  after packing: put the original back
// `engines` stands here alone: a clone brings its own Node, and npm would warn in it on an older one.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const file = "package.json";
const aside = "package.json.unpacked";
const engines = { node: ">=22.18" };

if (process.argv[2] === "strip") {
  const original = readFileSync(file, "utf8");
  const { scripts: _scripts, devDependencies: _dev, optionalDependencies: _node, ...published } = JSON.parse(original);
  writeFileSync(aside, original);
  writeFileSync(file, `${JSON.stringify({ ...published, engines }, null, 2)}\n`);
} else if (existsSync(aside)) {
  renameSync(aside, file);
}
