/** The upload of one file: streamed, and continued where it stopped after a lost connection. */
import { address } from './address';
import { ApiError, loginHeaders, refusal, send, type Attachment } from './client';
import type { HttpErrorBody, UploadView } from './types.gen';

const MEDIA_TYPE = /^[\w!#$&^.+-]{1,64}\/[\w!#$&^.+-]{1,64}$/;
/** Smaller files are sent again from their beginning, so that they need no hash. */
const RESUMABLE_BYTES = 1_000_000;
/** A connection on which nothing moves for this time is replaced. */
const STALLED_MS = 45_000;
const MAX_DELAY_MS = 15_000;
/** The connection failed, another one still sends the file, or the server is busy. */
const TEMPORARY = new Set([0, 408, 409, 429, 502, 503, 504]);

export interface UploadProgress {
  signal: AbortSignal;
  onProgress: (sent: number) => void;
  onRetry: () => void;
}

/** Return the media type that a browser names, if it is one. */
export function mediaTypeOf(file: File): string {
  return MEDIA_TYPE.test(file.type) ? file.type : 'application/octet-stream';
}

/** Send a file until the server has it. Throws an ApiError, or the reason of an abort. */
export async function upload(file: File, progress: UploadProgress): Promise<Attachment> {
  const sha256 = file.size < RESUMABLE_BYTES ? '' : await hashOf(file);
  for (let attempt = 0; ; attempt += 1) {
    try {
      progress.signal.throwIfAborted();
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      const { received, complete } = sha256 === '' ? NOTHING : await view(sha256, progress.signal);
      // the server returns a file that it has without reading the body
      const from = complete ? 0 : received;
      const rest = complete ? new Blob() : file.slice(from);
      progress.onProgress(complete ? file.size : from);
      // oxlint-disable-next-line no-await-in-loop
      return await put(addressOf(file, sha256, from), rest, mediaTypeOf(file), {
        ...progress,
        onProgress: (sent) => progress.onProgress(from + sent),
      });
    } catch (error) {
      progress.signal.throwIfAborted();
      if (!(error instanceof ApiError) || !TEMPORARY.has(error.status)) throw error;
      // a file that was moved or changed fails like a lost connection, but forever
      // oxlint-disable-next-line no-await-in-loop
      await file.slice(0, 1).arrayBuffer();
      progress.onRetry();
      // oxlint-disable-next-line no-await-in-loop
      await pause(Math.min(MAX_DELAY_MS, 500 * 2 ** attempt), progress.signal);
    }
  }
}

const NOTHING = { received: 0, complete: false };

function addressOf(file: File, sha256: string, offset: number): string {
  const hash = sha256 === '' ? '' : `&sha256=${sha256}&offset=${offset}`;
  return `/api/attachments?name=${encodeURIComponent(file.name)}${hash}`;
}

async function view(sha256: string, signal: AbortSignal): Promise<UploadView> {
  const response = await send(`/api/attachments/${sha256}/upload`, { signal });
  return (await response.json()) as UploadView;
}

let lastHash: Promise<unknown> = Promise.resolve();

/** Return the hash of a file. One file at a time is read, as it is held in memory. */
function hashOf(file: File): Promise<string> {
  const hash = lastHash.then(() => sha256Of(file));
  lastHash = hash.catch(() => undefined);
  return hash;
}

/** Return the SHA-256 of a file in hexadecimal; "" on plain HTTP and without the memory for it. */
async function sha256Of(file: File): Promise<string> {
  if (!isSecureContext) return '';
  const content = await file.arrayBuffer().catch(() => null);
  if (content === null) return '';
  const digest = await crypto.subtle.digest('SHA-256', content);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Send a body with progress, which fetch does not report. */
function put(path: string, body: Blob, mediaType: string, progress: UploadProgress): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    let timer: ReturnType<typeof setTimeout>;
    const watch = () => {
      clearTimeout(timer);
      timer = setTimeout(() => request.abort(), STALLED_MS);
    };
    const stop = () => request.abort();
    request.open('PUT', address(path));
    for (const [name, value] of Object.entries(loginHeaders())) request.setRequestHeader(name, value);
    request.setRequestHeader('content-type', mediaType);
    request.responseType = 'json';
    request.upload.addEventListener('progress', (event) => {
      watch();
      progress.onProgress(event.loaded);
    });
    request.addEventListener('load', () => {
      if (request.status < 300) {
        resolve(request.response as Attachment);
        return;
      }
      const refused = request.response as HttpErrorBody | null;
      void refusal(request.status, refused, request.statusText).then(reject);
    });
    request.addEventListener('error', () => reject(new ApiError(0, '')));
    request.addEventListener('abort', () => reject(new ApiError(0, '')));
    request.addEventListener('loadend', () => {
      clearTimeout(timer);
      progress.signal.removeEventListener('abort', stop);
    });
    progress.signal.addEventListener('abort', stop);
    watch();
    request.send(body);
  });
}

/** Wait, at most until the browser is online again or the upload is cancelled. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener('online', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    addEventListener('online', done);
    signal.addEventListener('abort', done);
  });
}
