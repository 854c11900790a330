/** The files of a workspace: what runs changed, and the files as they are now. */
import { send } from './client';
import type { ChangeDiffView, ChangesView, FileChangeView, TreeEntry, TreePage } from './types.gen';
import type { StoredFile } from './files';
import { displayName, extensionOf } from '../lib/file_name';

export type { ChangeDiffView, FileChangeView, TreeEntry };

const session = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;
const change = (id: string, number: string) => `${session(id)}/changes/${encodeURIComponent(number)}`;

/** Return the newest change of each file in a session. */
export async function listChanges(id: string): Promise<ChangesView> {
  return (await (await send(`${session(id)}/changes`)).json()) as ChangesView;
}

export async function showDiff(id: string, number: string): Promise<ChangeDiffView> {
  return (await (await send(`${change(id, number)}/diff`)).json()) as ChangeDiffView;
}

/** Give a file the state that it had before the run. It is refused if the file changed since. */
export async function undoChange(id: string, number: string): Promise<FileChangeView> {
  return (await (await send(`${change(id, number)}/undo`, { method: 'POST', body: '{}' })).json()) as FileChangeView;
}

/** Return a folder of the workspace, or the files whose paths contain `q`. */
export async function listWorkspace(id: string, path: string, q: string): Promise<TreePage> {
  const query = new URLSearchParams(q === '' ? { path } : { q });
  return (await (await send(`${session(id)}/workspace?${query}`)).json()) as TreePage;
}

const PICTURE = /^(png|jpg|jpeg|gif|webp|avif|bmp)$/;
const BINARY = /^(zip|gz|tgz|xz|bz2|7z|rar|jar|pyc|so|o|a|dll|exe|bin|dat|db|sqlite|woff2?|ttf|otf|mp3|mp4|mov|wav|ogg|pdf|docx?|xlsx?|pptx?)$/;

/** The media type by name, for the preview only: most files of a workspace are text. */
function mediaTypeOf(path: string): string {
  const extension = extensionOf(path);
  if (PICTURE.test(extension)) return `image/${extension === 'jpg' ? 'jpeg' : extension}`;
  return BINARY.test(extension) ? 'application/octet-stream' : 'text/plain';
}

/** A file of the workspace as the preview takes it. */
export function fileOfWorkspace(id: string, entry: Pick<TreeEntry, 'path' | 'size'>): StoredFile {
  const { path, size = 0 } = entry;
  const address = `${session(id)}/workspace/content?${new URLSearchParams({ path })}`;
  return { key: `${id}/${path}`, name: displayName(path), mediaType: mediaTypeOf(path), size, path: address, artifact: null };
}
