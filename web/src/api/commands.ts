/** The background commands of a session, in the gateway that serves the page. */
import { send } from './client';
import type { BackgroundCommand, PrintedOutput, CommandsView } from './types.gen';

export type { BackgroundCommand, PrintedOutput };

const commandsOf = (session: string) => `/api/sessions/${encodeURIComponent(session)}/commands`;

/** Return the commands that run or ended lately, oldest first. */
export async function listCommands(session: string): Promise<readonly BackgroundCommand[]> {
  const response = await send(commandsOf(session));
  return ((await response.json()) as CommandsView).commands;
}

/** Return the end of what a command printed, also after its end. */
export async function readCommand(session: string, id: string): Promise<PrintedOutput> {
  const response = await send(`${commandsOf(session)}/${encodeURIComponent(id)}/output`);
  return (await response.json()) as PrintedOutput;
}

/** End a command and all that it started. */
export async function stopCommand(session: string, id: string): Promise<void> {
  await send(`${commandsOf(session)}/${encodeURIComponent(id)}/stop`, { method: 'POST', body: '{}' });
}
