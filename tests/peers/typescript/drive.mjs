// The official TypeScript client against a server: `drive.mjs SDK stdio COMMAND [ARG]...` or `drive.mjs SDK http URL`.
// Prints one JSON object: what it was given.
import path from "node:path";
import { pathToFileURL } from "node:url";

const [sdk, how, ...where] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(sdk, name)).href);
const { Client } = await load("client/index.js");
const { ElicitRequestSchema } = await load("types.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const asked = [];
const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { decision: asked.length === 1 ? "approve" : "deny", reason: "enough" } };
});

await client.connect(
  how === "http"
    ? new StreamableHTTPClientTransport(new URL(where[0]), {
        requestInit: { headers: { Authorization: `Bearer ${process.env.TOKEN}` } },
      })
    : new StdioClientTransport({ command: where[0], args: where.slice(1), env: process.env, stderr: "ignore" }),
);
const told = {};
told.server = client.getServerVersion().name;
told.tools = (await client.listTools()).tools.map((tool) => tool.name);
told.echo = await client.callTool({ name: "note__read", arguments: { path: process.env.NOTE } });
const write = { name: "note__write", arguments: { path: `${process.env.NOTE}.new`, text: "from typescript" } };
told.approved = await client.callTool(write);
told.denied = await client.callTool(write);
told.unknown = await client.callTool({ name: "note__nothing", arguments: {} }).then(() => null, (error) => error.code);
const giveUp = new AbortController();
const waiting = client.callTool({ name: "slow__forever", arguments: {} }, undefined, { signal: giveUp.signal });
giveUp.abort("enough");
told.cancelled = await waiting.then(() => false, () => true);
told.again = (await client.callTool({ name: "note__read", arguments: { path: process.env.NOTE } })).content[0].text;
told.asked = asked;
await client.close();
process.stdout.write(JSON.stringify(told));
