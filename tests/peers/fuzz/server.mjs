// An echo server of the TypeScript SDK: `node FILE MODULES`. `echo` gives its arguments back.
import path from "node:path";
import { pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(path.join(process.argv[2], "@modelcontextprotocol/sdk/dist/esm", name)).href);
const [{ Server }, { StdioServerTransport }, { CallToolRequestSchema, ListToolsRequestSchema }] = await Promise.all([
  load("server/index.js"),
  load("server/stdio.js"),
  load("types.js"),
]);
const server = new Server({ name: "echo", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [{ name: "echo", description: "Gives its arguments back.", inputSchema: { type: "object" } }],
}));
server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
  content: [{ type: "text", text: JSON.stringify(params.arguments) }],
}));
await server.connect(new StdioServerTransport());
