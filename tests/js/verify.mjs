// snarkjs as a judge: reads one request a line (JSON) on standard input, writes one answer a line.
// Started with the folder node_modules as its only argument; ends when standard input ends.
//
// Requests: {"do": "verify", "vk", "public", "proof"}            -> {"value": true or false}
//           {"do": "export_vk", "zkey": path}                     -> {"value": verification key}
//           {"do": "prove", "zkey": path, "wtns": path}           -> {"value": {"proof", "public"}}
//           {"do": "check_witness", "r1cs": path, "wtns": path}   -> {"value": true or false}
//           {"do": "r1cs_info", "r1cs": path}                     -> {"value": counts and constraints}
// A request that throws                                           -> {"error": message}
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import path from "node:path";

const require = createRequire(path.join(path.resolve(process.argv[2]), "none.cjs"));
const snarkjs = require("snarkjs");

// Numbers as decimal strings, the way snarkjs itself prints them.
function plain(value) {
    if (typeof value === "bigint") return value.toString();
    if (Array.isArray(value)) return value.map(plain);
    if (value !== null && typeof value === "object" && !(value instanceof Uint8Array)) {
        return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
    }
    return value;
}

async function r1csInfo(file) {
    const cs = await snarkjs.r1cs.exportJson(file);
    return {
        prime: cs.prime, wires: cs.nVars, outputs: cs.nOutputs, publicInputs: cs.nPubInputs,
        privateInputs: cs.nPrvInputs, constraints: cs.constraints,
    };
}

// wtns.check calls its logger without asking whether there is one.
const quiet = { info() {}, warn() {}, error() {}, debug() {} };

const actions = {
    verify: (request) => snarkjs.groth16.verify(request.vk, request.public, request.proof),
    export_vk: (request) => snarkjs.zKey.exportVerificationKey(request.zkey),
    prove: async (request) => {
        const { proof, publicSignals } = await snarkjs.groth16.prove(request.zkey, request.wtns);
        return { proof, public: publicSignals };
    },
    check_witness: (request) => snarkjs.wtns.check(request.r1cs, request.wtns, quiet),
    r1cs_info: (request) => r1csInfo(request.r1cs),
};

for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
        const request = JSON.parse(line);
        answer = { value: plain(await actions[request.do](request)) };
    } catch (error) {
        answer = { error: String(error?.message ?? error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
}
// The worker threads of snarkjs would keep node alive.
process.exit(0);
