/** The background commands of a session, in the gateway that serves the page. */
import { send } from './client';
import type { BackgroundCommand, CommandsView } from './types.gen';

export type { BackgroundCommand };

const commandsOf = (session: string) => `/api/sessions/${encodeURIComponent(session)}/commands`;

/** Return the commands that run or ended lately, oldest first. */
export async function listCommands(session: string): Promise<readonly BackgroundCommand[]> {
  const response = await send(commandsOf(session));
  return ((await response.json()) as CommandsView).commands;
}

/** End a command and all that it started. */
export async function stopCommand(session: string, id: string): Promise<void> {
  await send(`${commandsOf(session)}/${encodeURIComponent(id)}/stop`, { method: 'POST', body: '{}' });
}
