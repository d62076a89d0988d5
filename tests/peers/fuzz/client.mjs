// The TypeScript SDK: `node FILE MODULES COMMAND [ARG]...`. Has `say` write the bytes of each line of stdin, and prints
// what it saw of them.
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, command, ...args] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(modules, "@modelcontextprotocol/sdk/dist/esm", name)).href);
const [{ Client }, { StdioClientTransport }, { LoggingMessageNotificationSchema }] = await Promise.all([
  load("client/index.js"),
  load("client/stdio.js"),
  load("types.js"),
]);
const print = (seen) => process.stdout.write(`${JSON.stringify(seen)}\n`);
let heard = [];
const client = new Client({ name: "typescript", version: "1" });
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => heard.push(["log", params.data]));
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }));
print({});
for await (const line of readline.createInterface({ input: process.stdin })) {
  heard = [];
  let seen;
  try {
    const onprogress = ({ progress, total, message }) => heard.push(["progress", progress, total ?? null, message ?? null]);
    seen = { result: await client.callTool({ name: "say", arguments: { bytes: line } }, undefined, { onprogress }) };
  } catch (error) {
    seen = "code" in error ? { error: [error.code, error.message, error.data ?? null] } : { raised: error.name };
  }
  print({ ...seen, heard });
}
await client.close();
