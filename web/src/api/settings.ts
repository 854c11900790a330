/** Requests of the settings page. */
import { send } from './client';
import type { PairingCode, PeopleView, RulesView, UsageView } from './types.gen';

async function read<T>(path: string): Promise<T> {
  return (await (await send(path)).json()) as T;
}

export const settingsApi = {
  usage: (by: 'day' | 'session' | 'model', limit: number) =>
    read<UsageView>(`/api/usage?by=${by}&limit=${limit}`),
  rules: () => read<RulesView>('/api/rules'),
  removeRule: (number: number) => send(`/api/rules/${number}`, { method: 'DELETE' }),
  people: () => read<PeopleView>('/api/people'),
  removePerson: (principal: string) =>
    send(`/api/people/${encodeURIComponent(principal)}`, { method: 'DELETE' }),
  async pair(role: 'talk' | 'operate'): Promise<PairingCode> {
    const response = await send('/api/pairings', { method: 'POST', body: JSON.stringify({ role }) });
    return (await response.json()) as PairingCode;
  },
};
