/** Adds files to drafts and uploads them, a few at a time. Uploads go on while another session is shown. */
import { ApiError } from '../api/client';
import { mediaTypeOf, upload } from '../api/upload';
import { fileMessages } from '../i18n/files';
import type { DroppedFiles } from '../lib/dropped_files';
import { displayName } from '../lib/file_name';
import { randomId } from '../stream/shared_stream';
import { useSessionStore } from './session_store';
import { draftFiles, setDraftFiles, type Upload } from './uploads';

export const MAX_FILE_BYTES = 100 * 1024 * 1024;
export const MAX_FILES = 50;
const MAX_PARALLEL = 3;

interface Entry {
  draft: string;
  file: File;
  stop: AbortController;
}

/** Files that are not uploaded completely, in the order in which they were added. */
const entries = new Map<string, Entry>();
const running = new Set<string>();

/** Add files to a draft. Return a sentence about those that cannot be added, or "". */
export function addFiles(draft: string, { files, folder }: DroppedFiles): string {
  const t = fileMessages();
  const large = files.find((file) => file.size > MAX_FILE_BYTES);
  const empty = files.find((file) => file.size === 0);
  const fitting = files.filter((file) => file.size > 0 && file.size <= MAX_FILE_BYTES);
  const present = draftFiles(draft);
  const added = fitting.slice(0, MAX_FILES - present.length);
  const uploads = added.map((file): Upload => {
    const id = randomId();
    entries.set(id, { draft, file, stop: new AbortController() });
    const facts = { name: displayName(file.name), size: file.size, media_type: mediaTypeOf(file) };
    return { id, ...facts, uri: '', status: 'waiting', sent: 0, failure: '' };
  });
  setDraftFiles(draft, [...present, ...uploads]);
  startNext();
  if (folder !== '') return t.folder(displayName(folder));
  if (large !== undefined) return t.tooLarge(displayName(large.name));
  if (empty !== undefined) return t.empty(displayName(empty.name));
  return added.length < fitting.length ? t.tooMany(MAX_FILES) : '';
}

/** Return a sentence about a file without which the message is not sent. */
export function describeFailed(file: Upload): string {
  return fileMessages().notUploaded(file.name);
}

/** Remove a file from a draft; an unfinished upload is cancelled. */
export function removeFile(draft: string, id: string): void {
  entries.get(id)?.stop.abort();
  entries.delete(id);
  setDraftFiles(draft, draftFiles(draft).filter((one) => one.id !== id));
}

/** Upload a file again after a failure. */
export function retryFile(draft: string, id: string): void {
  change(draft, id, { status: 'waiting', failure: '', sent: 0 });
  startNext();
}

function change(draft: string, id: string, facts: Partial<Upload>): void {
  setDraftFiles(draft, draftFiles(draft).map((one) => (one.id === id ? { ...one, ...facts } : one)));
}

function startNext(): void {
  for (const [id, entry] of entries) {
    if (running.size >= MAX_PARALLEL) return;
    const status = draftFiles(entry.draft).find((one) => one.id === id)?.status;
    if (status === 'waiting' && !running.has(id)) void run(id, entry);
  }
}

async function run(id: string, { draft, file, stop }: Entry): Promise<void> {
  running.add(id);
  change(draft, id, { status: 'sending' });
  try {
    const stored = await upload(file, {
      signal: stop.signal,
      onProgress: (sent) => change(draft, id, { status: 'sending', sent }),
      onRetry: () => change(draft, id, { status: 'retrying' }),
    });
    const { name, media_type, uri } = stored;
    change(draft, id, { name, media_type, uri, sent: file.size, status: 'done' });
    entries.delete(id);
  } catch (error) {
    if (!stop.signal.aborted) change(draft, id, { status: 'failed', failure: failureOf(error, file) });
  } finally {
    running.delete(id);
    startNext();
  }
}

function failureOf(error: unknown, file: File): string {
  const t = fileMessages();
  // the browser cannot read a file that was moved or changed after it was chosen
  if (!(error instanceof ApiError)) return t.unreadable(displayName(file.name));
  if (error.status === 401) useSessionStore.setState({ loggedOut: true });
  return error.message;
}
