// How long files are: node scripts/sizes.mjs src ../execa/lib …, one line a folder. Tests and generated code are left out.
import { globSync, readFileSync } from "node:fs";

const others = /_test\.go$|\.sql\.go$|\/dbsqlc\/|\/internal\/cmd\//;
for (const folder of process.argv.slice(2)) {
  const files = globSync(`${folder}/**/*.{ts,js,go}`).filter((file) => !others.test(file));
  const lines = files.map((file) => readFileSync(file, "utf8").split("\n").length - 1).sort((a, b) => a - b);
  const at = (part) => lines[Math.ceil(part * lines.length) - 1] ?? 0;
  process.stdout.write(`${folder}: ${files.length} files, median ${at(0.5)}, p90 ${at(0.9)}, longest ${at(1)} lines\n`);
}
