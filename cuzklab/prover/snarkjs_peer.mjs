// snarkjs as a peer of the benchmark: proves in one process with warm workers, from files held in memory.
// Started with the folder node_modules as its only argument; reads one request a line (JSON), writes one answer a line.
//
// {"zkey": path, "wtns": path}  -> {"loaded": true}
// {"prove": true}               -> {"ms": wall time of groth16.prove, "proof", "public"}
// A request that throws         -> {"error": message}
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import path from "node:path";

const require = createRequire(path.join(path.resolve(process.argv[2]), "none.cjs"));
const snarkjs = require("snarkjs");
let key, witness;

for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
        const request = JSON.parse(line);
        if (request.zkey) {
            key = new Uint8Array(readFileSync(request.zkey));
            witness = new Uint8Array(readFileSync(request.wtns));
            answer = { loaded: true };
        } else {
            const start = performance.now();
            const { proof, publicSignals } = await snarkjs.groth16.prove(key, witness);
            answer = { ms: performance.now() - start, proof, public: publicSignals };
        }
    } catch (error) {
        answer = { error: String(error?.message ?? error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
}
// The worker threads of snarkjs would keep node alive.
process.exit(0);
