import { useQuery } from '@tanstack/react-query';
import { Check, Copy, GitBranch, KeyRound, Pencil, PlayCircle, RefreshCw, Settings, SlidersHorizontal } from 'lucide-react';
import { useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { address } from '../../api/address';
import { api } from '../../api/client';
import { useRunActionMessages } from '../../i18n/run_actions';
import { useRunMessages } from '../../i18n/runs';
import { copyText } from '../../lib/clipboard';
import type { EndLine, InputLine, State } from '../../state/session_state';
import { loadEarlier, useSessionStore } from '../../state/session_store';
import { CHOOSE_MODEL_EVENT, setTaskOptions, taskFields, taskOptions } from '../../state/task_options';
import { randomId } from '../../stream/shared_stream';
import { useAttempt } from '../layout/use_attempt';
import { Action, Failure } from './action';
import { FeedbackButtons } from './feedback';

const COPIED_MS = 1_500;
/** Errors of the model that another address or default model ends; runs.json lists those that another key ends. */
const MODEL_SETTINGS_CODES = new Set(['model_region_refused', 'model_not_found', 'model_without_tools']);

/** What can be done with a run that has ended. */
export function RunActions({ line }: { line: EndLine }) {
  const a = useRunActionMessages();
  const isLast = useSessionStore((store) => store.state.runs.at(-1)?.run === line.run);
  const [copied, setCopied] = useState(false);
  const answer = useSessionStore((store) => answerOf(store.state, line));

  const [failure, busy, attempt] = useAttempt();
  const copy = () =>
    attempt(async () => {
      await copyText(answer);
      setCopied(true);
      setTimeout(() => setCopied(false), COPIED_MS);
    });
  const retry = () =>
    attempt(async () => {
      const { session } = useSessionStore.getState();
      const input = await findInput(line.run);
      if (session !== null && input !== undefined) await submit(session, input.text, input.attachments);
    });
  const regenerate = () =>
    attempt(async () => {
      const input = await findInput(line.run);
      if (input !== undefined) await sendInBranch(input, input.text);
    });
  const branch = () => attempt(async () => openBranch(await fork({ run_id: line.run, after: true })));
  const resume = () =>
    attempt(async () => {
      const run = useSessionStore.getState().state.runs.find((one) => one.run === line.run);
      if (run !== undefined) await api.resume(run.task);
    });
  const runs = useRunMessages();
  const isLimit = runs?.isLimit(line.reason) ?? false;
  const goOn = () =>
    attempt(async () => {
      const { session } = useSessionStore.getState();
      if (session === null) return;
      await submit(session, a.goOn);
    });
  const isComplete = line.status === 'completed';
  return (
    <span className="inline-flex flex-wrap items-center gap-1">
      {answer !== '' && (
        <Action icon={copied ? <Check size={13} /> : <Copy size={13} />} name={copied ? a.copied : a.copy} busy={busy} onClick={copy} quiet />
      )}
      {isLimit && isLast && (
        <Action icon={<PlayCircle size={13} />} name={a.goOn} title={a.goOnHint} busy={busy} onClick={goOn} />
      )}
      {!isComplete && !isLimit && isLast && (
        <>
          <Action icon={<PlayCircle size={13} />} name={a.resume} title={a.resumeHint} busy={busy} onClick={resume} />
          <Action icon={<RefreshCw size={13} />} name={a.retry} title={a.retryHint} busy={busy} onClick={retry} />
        </>
      )}
      {line.code.startsWith('model_') && isLast && (
        <Action icon={<SlidersHorizontal size={13} />} name={a.changeModel} busy={busy} onClick={() => dispatchEvent(new Event(CHOOSE_MODEL_EVENT))} />
      )}
      {isLast && <SettingsAction code={line.code} busy={busy} />}
      {isComplete && (
        <>
          <Action icon={<RefreshCw size={13} />} name={a.regenerate} busy={busy} onClick={regenerate} quiet />
          <Action icon={<GitBranch size={13} />} name={a.branch} busy={busy} onClick={branch} quiet />
          <FeedbackButtons run={line.run} />
        </>
      )}
      <Failure text={failure} />
    </span>
  );
}

/** Where the owner changes what the error of a model is about. */
function SettingsAction({ code, busy }: { code: string; busy: boolean }) {
  const a = useRunActionMessages();
  const runs = useRunMessages();
  const session = useSessionStore((store) => store.session) ?? '';
  const { data: me } = useQuery({ queryKey: ['me'], queryFn: api.me });
  if (me?.roles.includes('owner') !== true) return null;
  if (runs?.needsKey(code)) {
    const where = `/settings/models#key${taskOptions(session).model === '' ? '' : `=${encodeURIComponent(taskOptions(session).model)}`}`;
    return <Action icon={<KeyRound size={13} />} name={a.enterKey} busy={busy} onClick={() => navigate(address(where))} />;
  }
  if (!MODEL_SETTINGS_CODES.has(code)) return null;
  return <Action icon={<Settings size={13} />} name={a.modelSettings} busy={busy} onClick={() => navigate(address('/settings/models'))} />;
}

/** A message of a person that can be changed and sent in a branch. */
export function EditMessage({ line }: { line: InputLine }) {
  const a = useRunActionMessages();
  const [text, setText] = useState<string | null>(null);
  const [failure, busy, attempt] = useAttempt();
  if (text === null) {
    return (
      <span className="absolute right-1 -bottom-3 rounded-lg border border-line bg-raised opacity-0 group-hover:opacity-100 focus-within:opacity-100 pointer-coarse:static pointer-coarse:mt-1 pointer-coarse:inline-block pointer-coarse:opacity-100">
        <Action icon={<Pencil size={13} />} name={a.edit} busy={false} onClick={() => setText(line.text)} quiet />
      </span>
    );
  }
  return (
    <form
      className="mt-2 w-full"
      onSubmit={(event) => {
        event.preventDefault();
        void attempt(() => sendInBranch(line, text));
      }}
    >
      <textarea
        aria-label={a.edit}
        // oxlint-disable-next-line jsx-a11y/no-autofocus -- the person has just asked for it
        autoFocus
        dir="auto"
        value={text}
        onChange={(event) => setText(event.target.value)}
        className="field-sizing-content block max-h-[40vh] min-h-16 w-full resize-none rounded-lg border border-line bg-bg px-3 py-2"
      />
      <span className="mt-1.5 flex gap-1.5">
        <button type="submit" className="choice choice-primary" disabled={busy || text.trim() === ''}>
          {a.send}
        </button>
        <button type="button" className="choice" onClick={() => setText(null)}>
          {a.cancel}
        </button>
        <Failure text={failure} />
      </span>
    </form>
  );
}

/** Return the message that a run began with, which may be an event that is not loaded. */
async function findInput(run: string): Promise<InputLine | undefined> {
  const known = inputOf(useSessionStore.getState().state, run);
  if (known !== undefined) return known;
  await loadEarlier(true);
  return inputOf(useSessionStore.getState().state, run);
}

function inputOf(state: State, run: string): InputLine | undefined {
  const line = state.thread.lines.find((one) => one.kind === 'input' && one.run === run);
  return line?.kind === 'input' ? line : undefined;
}

async function fork(where: Parameters<typeof api.fork>[1]): Promise<string> {
  const { session } = useSessionStore.getState();
  const branch = (await api.fork(session ?? '', where)).session_id;
  setTaskOptions(branch, taskOptions(session ?? ''));
  return branch;
}

function openBranch(session: string): void {
  navigate(address(`/sessions/${session}`));
}

async function sendInBranch(input: InputLine, text: string): Promise<void> {
  const session = await fork({ run_id: input.run, after: false });
  await submit(session, text, input.attachments);
  openBranch(session);
}

async function submit(session: string, text: string, attachments: InputLine['attachments'] = []): Promise<void> {
  const [used, me] = await Promise.all([api.session(session), api.me()]);
  await api.submit({
    task: text,
    session_id: session,
    attachments: attachments.map(({ name, media_type, uri }) => ({ name, media_type, uri })),
    idempotency_key: randomId(),
    ...taskFields(taskOptions(session), used, me),
  });
}

/** Return the answer of a run as Markdown, "" without one. */
function answerOf(state: State, end: EndLine): string {
  if (end.answer.trim() !== '') return end.answer;
  const said = state.thread.lines.findLast((line) => line.run === end.run && line.kind === 'say');
  return end.status === 'completed' && said?.kind === 'say' ? said.text : '';
}
