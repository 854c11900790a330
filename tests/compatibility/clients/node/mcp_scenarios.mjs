// Scenarios for clients of MCP, as in ../python/mcp_scenarios.py.
import { DOOR, KEY, URL_OF_GATEWAY, attempt, prompt, say } from "./scenarios.mjs";

export const IS_ADDRESS = DOOR === "mcp";
export const ADDRESS = `${URL_OF_GATEWAY}/mcp`;
export const COMMAND = process.env.LARKSPUR_PROGRAM;
export const ENVIRON = {
  LARKSPUR_HOME: process.env.LARKSPUR_GATEWAY_HOME,
  HOME: process.env.HOME,
};
export const headers = (key) => ({ Authorization: `Bearer ${key}` });

// `connect(key)` gives {names(), call(tool, args, onProgress), close()}.
export async function mcp(connect, { without = {} } = {}) {
  const one = async (scenario, work, key = KEY) => {
    if (scenario in without) return say(scenario, { absent: without[scenario] });
    return attempt(scenario, async () => {
      const session = await connect(key);
      try {
        return await work(session);
      } finally {
        await session.close();
      }
    });
  };
  const resultOf = async (session, scenario, onProgress) => {
    const made = JSON.parse(await session.call("create_task", { instruction: prompt(scenario) }));
    const wanted = { task_id: made.task_id, wait_seconds: 50 };
    return session.call("task_result", wanted, onProgress);
  };
  await one("list", (session) => session.names());
  await one("call", (session) => resultOf(session, "plain"));
  await one("progress", async (session) => {
    let count = 0;
    await resultOf(session, "slow", () => {
      count += 1;
    });
    return count;
  });
  await one("mistake", (session) => session.call("task_status", { task_ids: ["task-none"] }));
  if (IS_ADDRESS)
    await one("wrong key", (session) => session.names(), "no-such-key-0000000000000000000000000000");
  process.exit(0);
}
