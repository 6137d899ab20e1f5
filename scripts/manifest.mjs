// The published manifest names no Node binary and none of the repository's own tools.
//   strip    before packing: keep the original aside, write the published one
//   restore  after packing: put the original back
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const file = "package.json";
const aside = "package.json.unpacked";

if (process.argv[2] === "strip") {
  const original = readFileSync(file, "utf8");
  const { scripts: _scripts, devDependencies: _dev, optionalDependencies: _node, ...published } = JSON.parse(original);
  writeFileSync(aside, original);
  writeFileSync(file, `${JSON.stringify(published, null, 2)}\n`);
} else if (existsSync(aside)) {
  renameSync(aside, file);
}
