// Check an unzipped evidence package of Remit: node check.mjs FOLDER. What verify.py checks in full, in forty lines.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2];
const read = (path) => readFileSync(join(folder, path));
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const named = (bytes) => `sha256:${sha256(bytes).toString("hex")}`;
const fail = (why) => { console.log(`rejected: ${why}`); process.exit(1); };

// RFC 8785: JavaScript writes numbers and sorts names as the standard says.
const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
};

const { hash, ...manifest } = JSON.parse(read("manifest.json"));
if (named(canonical(manifest)) !== hash) fail("manifest.json does not match its own hash");
for (const { path, sha256: digest } of manifest.artifacts) {
  if (!existsSync(join(folder, path)) || named(read(path)) !== digest) fail(`${path} is not the file of the manifest`);
}

const last = new Map();
for (const line of read("events.ndjson").toString().trimEnd().split("\n")) {
  const { stream, seq, kind, at, data, hash: said } = JSON.parse(line);
  const before = last.get(stream) ?? { seq: 0, hash: sha256("remit-chain-1\0", stream) };
  const frame = Buffer.alloc(18);
  frame.writeBigUInt64BE(BigInt(seq), 0);
  frame.writeBigInt64BE(BigInt(at), 8);
  frame.writeUInt16BE(Buffer.byteLength(kind), 16);
  const next = sha256(before.hash, frame, kind, data);
  if (seq !== before.seq + 1 || next.toString("hex") !== said) fail(`${stream}: event ${seq} breaks the chain`);
  last.set(stream, { seq, hash: next });
}
for (const { stream, events, hash: end } of JSON.parse(read("proof.json")).streams) {
  if (last.get(stream)?.seq !== events || last.get(stream).hash.toString("hex") !== end) fail(`${stream} ends elsewhere`);
}
console.log(`every chain holds, of ${last.size} stream${last.size === 1 ? "" : "s"}: ${hash}`);
