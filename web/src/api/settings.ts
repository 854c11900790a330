/** Requests of the settings page. */
import { address } from './address';
import { loginHeaders, send } from './client';
import type {
  DeadLettersView,
  Finding,
  Findings,
  Health,
  LarkAppView,
  McpReviewReport,
  McpServersView,
  McpServerSummary,
  PairingCode,
  PeopleView,
  ProcessesView,
  ProvidersView,
  RulesView,
  ServerModelsView,
  SkillReviewReport,
  SkillsView,
  SkillSummary,
  UsageView,
} from './types.gen';

async function read<T>(path: string, method = 'GET', body?: unknown): Promise<T> {
  return (await (await send(path, { method, body: JSON.stringify(body) })).json()) as T;
}

/** The credentials of an app; `domain` is `feishu`, `lark` or an origin. */
export interface LarkApp {
  app_id: string;
  app_secret: string;
  domain: string;
}

/** A key and an address; what is left out stays as it is. */
export interface ModelAccess {
  key?: string;
  base_url?: string;
}

const provider = (name: string) => `/api/providers/${encodeURIComponent(name)}`;

const skillReview = (name: string) => `/api/skills/${encodeURIComponent(name)}/review`;

const server = (name: string) => `/api/mcp/servers/${encodeURIComponent(name)}`;

const letter = (id: string) => `/api/dead-letters/${encodeURIComponent(id)}`;

export const settingsApi = {
  usage: (by: 'day' | 'session' | 'model', limit: number) =>
    read<UsageView>(`/api/usage?by=${by}&limit=${limit}`),
  rules: () => read<RulesView>('/api/rules'),
  removeRule: (number: number) => send(`/api/rules/${number}`, { method: 'DELETE' }),
  people: () => read<PeopleView>('/api/people'),
  removePerson: (principal: string) =>
    send(`/api/people/${encodeURIComponent(principal)}`, { method: 'DELETE' }),
  pair: (role: 'talk' | 'operate') => read<PairingCode>('/api/pairings', 'POST', { role }),
  deadLetters: () => read<DeadLettersView>('/api/dead-letters'),
  retryLetter: (id: string, mayRepeat: boolean) =>
    send(`${letter(id)}/retry`, { method: 'POST', body: JSON.stringify({ may_repeat: mayRepeat }) }),
  dismissLetter: (id: string) => send(`${letter(id)}/dismiss`, { method: 'POST' }),
  processes: () => read<ProcessesView>('/api/processes'),
  providers: () => read<ProvidersView>('/api/providers'),
  checkKey: (name: string, access: ModelAccess) => read<Finding>(`${provider(name)}/check`, 'POST', access),
  storeKey: (name: string, access: ModelAccess) => read<ProvidersView>(`${provider(name)}/key`, 'PUT', access),
  serverModels: (name: string) => read<ServerModelsView>(`${provider(name)}/models`),
  removeKey: (name: string) => read<ProvidersView>(`${provider(name)}/key`, 'DELETE'),
  chooseModel: (model: string) => read<ProvidersView>('/api/models/default', 'PUT', { model }),
  skills: () => read<SkillsView>('/api/skills'),
  review: (name: string) => read<SkillReviewReport>(skillReview(name)),
  reviewSkill: (name: string, sha256: string, accept: boolean, rules: readonly string[]) =>
    read<SkillSummary>(skillReview(name), 'POST', { sha256, accept, rules }),
  servers: () => read<McpServersView>('/api/mcp/servers'),
  server: (name: string) => read<McpReviewReport>(`${server(name)}/review`),
  testServer: (name: string) => read<McpReviewReport>(`${server(name)}/test`, 'POST', {}),
  reviewServer: (name: string, sha256: string, accept: boolean) =>
    read<McpServerSummary>(`${server(name)}/review`, 'POST', { sha256, accept }),
  lark: () => read<LarkAppView>('/api/channels/lark'),
  /** Return the state of the connection of Lark, null without a channel. */
  larkHealth: async () => {
    // 503 says that something does not work, with the same content
    const response = await fetch(address('/health'), { headers: loginHeaders() });
    return ((await response.json()) as Health).lark ?? null;
  },
  /** Check an app; without credentials that of the channel that runs. */
  checkLark: (app: Partial<LarkApp>) => read<Findings>('/api/channels/lark/check', 'POST', app),
  connectLark: (app: LarkApp) => read<LarkAppView>('/api/channels/lark', 'PUT', app),
  disconnectLark: () => read<LarkAppView>('/api/channels/lark', 'DELETE'),
};
