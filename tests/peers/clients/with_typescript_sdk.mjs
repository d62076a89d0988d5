// The TypeScript SDK, 1.x or 2.x: `node FILE MODULES COMMAND [ARG]...`, where MODULES is the folder that has it.
// Lists the tools; then makes each call that a line of stdin names.
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, major, command, ...args] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(modules, "@modelcontextprotocol", name)).href);
const [{ Client }, { StdioClientTransport }] = await Promise.all(
  major === "1"
    ? [load("sdk/dist/esm/client/index.js"), load("sdk/dist/esm/client/stdio.js")]
    : [load("client/dist/index.mjs"), load("client/dist/stdio.mjs")],
);
const print = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

const client = new Client({ name: "typescript", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }));
print((await client.listTools()).tools.map((tool) => tool.name));
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [name, given] = JSON.parse(line);
  const result = await client.callTool({ name, arguments: given });
  print([result.isError ?? false, ...result.content.map((block) => block.text)]);
}
await client.close();
