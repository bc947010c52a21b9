// Builds the tests and runs all of them (`npm test`) or one (`npm test measures`). `npm run shoot DIRECTORY` and
// `npm run speed ...` run the programs test/shoot.ts and test/speed.ts.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { build } from "esbuild";

const outdir = "node_modules/.tests";
const entryPoints = readdirSync("test").map((name) => `test/${name}`);
const outExtension = { ".js": ".mjs" };
await build({ entryPoints, bundle: true, platform: "node", format: "esm", packages: "external", outdir, outExtension, sourcemap: "inline" });

const named = process.argv.slice(2);
const isProgram = ["shoot", "speed"].includes(named[0]);
const tests = (named.length > 0 ? named : ["measures", "page", "served", "table"]).map((name) => `${outdir}/${name}.test.mjs`);
const reporters = ["spec", "./skipped.mjs"].flatMap((name) => [`--test-reporter=${name}`, "--test-reporter-destination=stdout"]);
const run = isProgram ? [`${outdir}/${named[0]}.mjs`, ...named.slice(1)] : ["--test", "--test-concurrency=1", ...reporters, ...tests];
const { status } = spawnSync(process.execPath, ["--enable-source-maps", ...run], { stdio: "inherit" });
process.exit(status ?? 1);
