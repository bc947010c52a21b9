// Builds the page as one file with its script and style: `npm run build`. With --check only checks that the built page
// equals the page that the sources produce.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = (name) => fileURLToPath(new URL(`src/${name}`, import.meta.url));
const built = fileURLToPath(new URL("../src/page.html", import.meta.url));

async function bundle(entry, loader) {
  const options = { bundle: true, minify: true, write: false, charset: "utf8", legalComments: "none", target: "es2022" };
  const result = await build({ ...options, ...entry, format: loader });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = await bundle({ entryPoints: [source("main.ts")] }, "iife");
const style = await bundle({
  stdin: { contents: '@import "uplot/dist/uPlot.min.css"; @import "./src/page.css";', resolveDir: fileURLToPath(new URL(".", import.meta.url)), loader: "css" },
});
// The browser runs only this script and style, and fetches only the columns, from the server of the page.
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
const parts = { policy, style, script };
const page = readFileSync(source("page.html"), "utf8").replace(/@(policy|style|script)@/g, (_, part) => parts[part]);

if (!process.argv.includes("--check")) writeFileSync(built, page);
else if (readFileSync(built, "utf8") !== page) {
  console.error("crates/traces/viewer/src/page.html is out of date with crates/traces/viewer/page: run make page, and commit the file");
  process.exit(1);
}
