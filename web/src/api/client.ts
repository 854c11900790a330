/** The HTTP API client. Responses have the types of the server; every failure is an ApiError. */
import { address, sharedName } from './address';
import { storage, usePreferences, type Language } from '../state/preferences';
import type {
  Attachment,
  ErrorDetail,
  HttpErrorBody,
  EventsPage,
  LoginView,
  MessagesPage,
  MeView,
  Mode,
  ModelsView,
  ProfilesView,
  QuestionsPage,
  QuestionView,
  SessionListItem,
  SessionsPage,
  SessionView,
  Steered,
  Submitted,
  TasksPage,
  TaskView,
} from './types.gen';

export type { Attachment, MeView, Mode, QuestionsPage, QuestionView, SessionListItem, SessionsPage, SessionView };

/** A request failed; `status` is 0, and there is no message, if the server was not reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = '',
  ) {
    super(message);
  }
}

/**
 * Return the error of a refused request. Its message is in the language of the page: the server's own
 * sentence is the English one, and that of a reason without a text.
 */
export async function refusal(status: number, body: HttpErrorBody | null, phrase: string): Promise<ApiError> {
  const detail = body?.error ?? { code: '', message: phrase, request_id: '' };
  const { language } = usePreferences.getState();
  const translate = await REFUSALS[language]().catch(() => null);
  return new ApiError(status, translate?.(detail) ?? detail.message, detail.code);
}

/** Texts of refusals in other languages than that of the server, loaded with the first refusal. */
const REFUSALS: Record<Language, () => Promise<((detail: ErrorDetail) => string) | null>> = {
  en: () => Promise.resolve(null),
  zh: () => import('../i18n/refusals').then((module) => module.translateRefusal),
};

/** Return true if a request failed with this status. */
export function hasStatus(error: unknown, status: number): boolean {
  return error instanceof ApiError && error.status === status;
}

/** Return true if a text was refused because it was written before what it would act on. */
export function isWrittenEarlier(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'written_earlier';
}

const LOGIN_KEY = sharedName('larkspur.login');
let loginKey: string | null = null;

/**
 * Keep the login key, which the server requires in addition to the cookie: the browser sends the
 * cookie to all ports of the host, and keeps local storage for one origin. Without local storage the
 * login lasts as long as the page.
 */
export function setLoginKey(key: string | null): void {
  loginKey = key;
  storage.write(LOGIN_KEY, key);
}

export function loginHeaders(): Record<string, string> {
  return { 'x-larkspur-login-key': storage.read(LOGIN_KEY) ?? loginKey ?? '' };
}

/** Send a request with the login. Failures are ApiErrors. */
export async function send(
  path: string,
  options: RequestInit = {},
  more: Record<string, string> = {},
): Promise<Response> {
  const headers = { 'content-type': 'application/json', ...loginHeaders(), ...more };
  const response = await fetch(address(path), { headers, ...options }).catch(() => {
    throw new ApiError(0, '');
  });
  if (response.ok) return response;
  const body = (await response.json().catch(() => null)) as HttpErrorBody | null;
  throw await refusal(response.status, body, response.statusText);
}

async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await send(path, { method, body: JSON.stringify(body) });
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export interface AttachmentInput {
  name: string;
  media_type: string;
  uri: string;
}

export interface CreateTaskRequest {
  task: string;
  session_id?: string;
  attachments: AttachmentInput[];
  idempotency_key: string;
  plan_review?: 'always';
  profile?: string;
  options: { permission_mode?: string; model?: string; workspace?: string };
}

/** Which sessions a list contains. */
export interface SessionFilter {
  q?: string;
  channel?: string;
  archived?: 'true' | 'false';
  one_shots?: 'true' | 'false';
}

export interface SessionChanges {
  title?: string;
  pinned?: boolean;
  archived?: boolean;
  read?: boolean;
}

/** An answer to a question. The server validates which fields a question accepts. */
export interface AnswerInput {
  decision: 'approve' | 'edit' | 'reject' | 'text';
  text?: string;
  edit?: { steps: string[]; goal: string };
  choices?: number[];
  items?: Record<string, boolean>;
  grant?: 'session' | 'rule';
  rules?: string[];
  idempotency_key?: string;
  /** The newest event that was shown when the text was written; without it, it was written now. */
  seen?: string;
}

const session = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;
const task = (id: string) => `/api/tasks/${encodeURIComponent(id)}`;

export const api = {
  models: () => request<ModelsView>('GET', '/api/models'),
  profiles: () => request<ProfilesView>('GET', '/api/profiles'),
  me: () => request<MeView>('GET', '/api/me'),
  login: (code: string) => request<LoginView>('POST', '/api/login', { code }),
  logout: () => request<void>('POST', '/api/logout', {}),
  sessions: (filter: SessionFilter, cursor?: string) => {
    const query = new URLSearchParams({ ...filter, limit: '50', ...(cursor && { cursor }) });
    return request<SessionsPage>('GET', `/api/sessions?${query}`);
  },
  session: (id: string) => request<SessionView>('GET', session(id)),
  change: (id: string, changes: SessionChanges) => request<SessionView>('PATCH', session(id), changes),
  fork: (id: string, where: { run_id: string; after: boolean }) =>
    request<SessionView>('POST', `${session(id)}/fork`, where),
  messages: (id: string, cursor: string) =>
    request<MessagesPage>('GET', `${session(id)}/messages?limit=50${cursor && `&cursor=${cursor}`}`),
  remove: (id: string) => request<void>('DELETE', session(id)),
  /** The newest events before an ID; before `end`, the newest of all. */
  events: (id: string, before: string) =>
    request<EventsPage>('GET', `${session(id)}/events?limit=500&before=${encodeURIComponent(before)}`),
  submit: (body: CreateTaskRequest) => request<Submitted>('POST', '/api/tasks', body),
  steer: (id: string, text: string, key: string, seen = '') =>
    request<Steered>('POST', `${task(id)}/steer`, { text, idempotency_key: key, ...(seen !== '' && { seen }) }),
  tasks: (id: string, cursor: string) =>
    request<TasksPage>('GET', `/api/tasks?session_id=${encodeURIComponent(id)}&limit=500${cursor && `&cursor=${cursor}`}`),
  taskGroup: (group: 'needs_me' | 'running' | 'done') =>
    request<TasksPage>('GET', `/api/tasks?group=${group}&subtasks=true&limit=50`),
  rate: (id: string, rating: 'up' | 'down' | null, comment: string) =>
    request<TaskView>('PUT', `${task(id)}/feedback`, { rating, comment }),
  resume: (id: string) => request<Submitted>('POST', `${task(id)}/resume`, {}),
  moveToBackground: (id: string) => request<void>('POST', `${task(id)}/background`, {}),
  stop: (id: string) => request<void>('POST', `${task(id)}/stop`, {}),
  questions: () => request<QuestionsPage>('GET', '/api/questions?status=open&limit=500'),
  answer: (id: string, input: AnswerInput) =>
    request<QuestionView>('POST', `/api/questions/${encodeURIComponent(id)}/answer`, input),
};
