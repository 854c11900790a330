/** The HTTP API: every answer typed from the server's shapes, every failure one kind of error. */
import type { Given } from '../state/questions';
import type {
  Attachment,
  ErrorResponse,
  EventsPage,
  MeView,
  QuestionsPage,
  QuestionView,
  SessionListItem,
  SessionsPage,
  SessionView,
  Steered,
  Submitted,
} from './types.gen';

export type { Attachment, MeView, QuestionsPage, QuestionView, SessionListItem, SessionView };

/** What the server refused, or that it was not reached (`status` 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: 'same-origin',
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
  } catch {
    throw new ApiError(0, 'unreachable', '');
  }
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
  const { error } = (await response.json().catch(() => ({
    error: { code: 'unknown', message: response.statusText },
  }))) as ErrorResponse;
  throw new ApiError(response.status, error.code, error.message);
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
  options: { permission_mode?: string };
}

const session = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;
const task = (id: string) => `/api/tasks/${encodeURIComponent(id)}`;

export const api = {
  me: () => call<MeView>('GET', '/api/me'),
  login: (code: string) => call<void>('POST', '/api/login', { code }),
  logout: () => call<void>('POST', '/api/logout', {}),
  sessions: (cursor?: string) =>
    call<SessionsPage>('GET', `/api/sessions?limit=100${cursor ? `&cursor=${cursor}` : ''}`),
  session: (id: string) => call<SessionView>('GET', session(id)),
  rename: (id: string, title: string) => call<SessionView>('PATCH', session(id), { title }),
  remove: (id: string) => call<void>('DELETE', session(id)),
  events: (id: string, after: string) =>
    call<EventsPage>(
      'GET',
      `${session(id)}/events?limit=500${after ? `&after=${encodeURIComponent(after)}` : ''}`,
    ),
  submit: (given: CreateTaskRequest) => call<Submitted>('POST', '/api/tasks', given),
  steer: (id: string, text: string) => call<Steered>('POST', `${task(id)}/steer`, { text }),
  stop: (id: string) => call<void>('POST', `${task(id)}/stop`, {}),
  questions: () => call<QuestionsPage>('GET', '/api/questions?status=open&limit=500'),
  answer: (id: string, given: Given) =>
    call<QuestionView>('POST', `/api/questions/${encodeURIComponent(id)}/answer`, given),
  keep: (name: string, media_type: string, data: string) =>
    call<Attachment>('POST', '/api/attachments', { name, media_type, data }),
};
