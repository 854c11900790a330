/** The files of unsent messages. They are uploaded when they are added, and kept with the draft. */
import { create } from 'zustand';
import type { AttachmentInput } from '../api/client';
import { storage, storedObject } from './preferences';

export interface Upload extends AttachmentInput {
  id: string;
  size: number;
  status: 'waiting' | 'sending' | 'retrying' | 'done' | 'failed';
  /** Number of bytes that the server has. */
  sent: number;
  failure: string;
}

const keyOf = (draft: string) => `larkspur.draft.${draft}.files`;

export const useUploads = create<Record<string, readonly Upload[]>>(() => ({}));

/** Return the files of a draft. After a reload those that were uploaded completely are left. */
export function draftFiles(draft: string): readonly Upload[] {
  return useUploads.getState()[draft] ?? stored(draft);
}

export function useDraftFiles(draft: string): readonly Upload[] {
  const files = useUploads((store) => store[draft]);
  return files ?? stored(draft);
}

export function setDraftFiles(draft: string, files: readonly Upload[]): void {
  useUploads.setState({ [draft]: files });
  const done = files.filter((one) => one.status === 'done');
  storage.write(keyOf(draft), done.length === 0 ? null : JSON.stringify(done));
}

export function isPending(upload: Upload): boolean {
  return upload.status !== 'done' && upload.status !== 'failed';
}

const cache = new Map<string, readonly Upload[]>();

function stored(draft: string): readonly Upload[] {
  let files = cache.get(draft);
  if (files === undefined) {
    files = Object.values(storedObject(keyOf(draft))).filter(isUpload);
    cache.set(draft, files);
  }
  return files;
}

function isUpload(value: unknown): value is Upload {
  const { id, name, size, status } = (value ?? {}) as Partial<Record<keyof Upload, unknown>>;
  return typeof id === 'string' && typeof name === 'string' && typeof size === 'number' && status === 'done';
}
