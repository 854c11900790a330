// client: @modelcontextprotocol/sdk
// registry: npm
// packages: @modelcontextprotocol/sdk@1.32.2
// door: mcp mcp-serve
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ADDRESS, COMMAND, ENVIRON, IS_ADDRESS, headers, mcp } from "./mcp_scenarios.mjs";

async function connect(key) {
  const client = new Client({ name: "compatibility", version: "1" });
  await client.connect(
    IS_ADDRESS
      ? new StreamableHTTPClientTransport(new URL(ADDRESS), {
          requestInit: { headers: headers(key) },
        })
      : new StdioClientTransport({ command: COMMAND, args: ["mcp", "serve"], env: ENVIRON }),
  );
  return {
    names: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (name, given, onprogress) =>
      (await client.callTool({ name, arguments: given }, undefined, { onprogress })).content[0].text,
    close: () => client.close(),
  };
}

await mcp(connect);
