/** The names of tools as people read them, as in the terminal and in chats. */

const MCP = /^mcp__(.+?)__(.+)$/;

/** Return true if a tool is one of an MCP server. */
export function isMcp(tool: string): boolean {
  return MCP.test(tool);
}

/** Return what people read in place of the name of a tool of an MCP server; others keep it. */
export function toolLabel(tool: string, title = ''): string {
  const [, server, name] = MCP.exec(tool) ?? [];
  if (title !== '' || name === undefined) return title || tool;
  return `${name.replace(/[_.-]+/g, ' ').trim()} (${server})`;
}
