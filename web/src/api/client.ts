/** The HTTP API client. Responses have the types of the server; every failure is an ApiError. */
import type {
  Attachment,
  HttpErrorBody,
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

/** A request failed; `status` is 0 if the server was not reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
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
  }))) as HttpErrorBody;
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

/** An answer to a question. The server validates which fields a question accepts. */
export interface AnswerInput {
  decision: 'approve' | 'edit' | 'reject' | 'text';
  text?: string;
  edit?: { steps: string[]; goal: string };
  choices?: number[];
  items?: Record<string, boolean>;
  grant?: 'session' | 'rule';
  rules?: string[];
}

const session = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;
const task = (id: string) => `/api/tasks/${encodeURIComponent(id)}`;

export const api = {
  me: () => request<MeView>('GET', '/api/me'),
  login: (code: string) => request<void>('POST', '/api/login', { code }),
  logout: () => request<void>('POST', '/api/logout', {}),
  sessions: (cursor?: string) =>
    request<SessionsPage>('GET', `/api/sessions?limit=100${cursor ? `&cursor=${cursor}` : ''}`),
  session: (id: string) => request<SessionView>('GET', session(id)),
  rename: (id: string, title: string) => request<SessionView>('PATCH', session(id), { title }),
  remove: (id: string) => request<void>('DELETE', session(id)),
  events: (id: string, after: string) =>
    request<EventsPage>(
      'GET',
      `${session(id)}/events?limit=500${after ? `&after=${encodeURIComponent(after)}` : ''}`,
    ),
  submit: (body: CreateTaskRequest) => request<Submitted>('POST', '/api/tasks', body),
  steer: (id: string, text: string) => request<Steered>('POST', `${task(id)}/steer`, { text }),
  stop: (id: string) => request<void>('POST', `${task(id)}/stop`, {}),
  questions: () => request<QuestionsPage>('GET', '/api/questions?status=open&limit=500'),
  answer: (id: string, input: AnswerInput) =>
    request<QuestionView>('POST', `/api/questions/${encodeURIComponent(id)}/answer`, input),
  upload: (name: string, media_type: string, data: string) =>
    request<Attachment>('POST', '/api/attachments', { name, media_type, data }),
};
