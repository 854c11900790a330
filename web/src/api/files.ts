/** Stored files: their content needs the login key, which links and images cannot send. */
import { send, type Attachment } from './client';
import type { ArtifactsPage, ArtifactView } from './types.gen';
import type { ManifestEntry } from '../stream/events';
import { displayName } from '../lib/file_name';

export type { ArtifactView };

/** A file with the address of its content; `artifact` if a run made it. */
export interface StoredFile {
  key: string;
  name: string;
  mediaType: string;
  size: number;
  path: string;
  artifact: string | null;
}

/** Browsers read the content after the click; its memory is freed after this time. */
const READ_MS = 60_000;

const artifact = (id: string) => `/api/artifacts/${encodeURIComponent(id)}`;

export function fileOfAttachment(file: Attachment): StoredFile {
  const { name, media_type: mediaType, size, sha256 } = file;
  return { key: `${sha256}/${name}`, name: displayName(name), mediaType, size, path: `/api/attachments/${sha256}`, artifact: null };
}

export function fileOfArtifact(entry: ManifestEntry | ArtifactView): StoredFile {
  const { artifact_id: id, name, media_type: mediaType, size } = entry;
  return { key: id, name: displayName(name), mediaType, size, path: `${artifact(id)}/content`, artifact: id };
}

export interface ArtifactFilter {
  q: string;
  type: ArtifactView['type'] | '';
  favourite: boolean;
}

export async function listArtifacts(filter: ArtifactFilter, cursor: string, limit: number): Promise<ArtifactsPage> {
  const query = new URLSearchParams({ limit: String(limit) });
  if (filter.q !== '') query.set('q', filter.q);
  if (filter.type !== '') query.set('type', filter.type);
  if (filter.favourite) query.set('favourite', 'true');
  if (cursor !== '') query.set('cursor', cursor);
  return (await (await send(`/api/artifacts?${query}`)).json()) as ArtifactsPage;
}

export async function showArtifact(id: string): Promise<ArtifactView> {
  return (await (await send(artifact(id))).json()) as ArtifactView;
}

export async function changeArtifact(
  id: string,
  change: { favourite?: boolean; caption?: string },
): Promise<ArtifactView> {
  const response = await send(artifact(id), { method: 'PATCH', body: JSON.stringify(change) });
  return (await response.json()) as ArtifactView;
}

/** Return the content of a file, or its first bytes. */
export async function readContent(file: StoredFile, maxBytes = Infinity): Promise<Blob> {
  if (maxBytes >= file.size) return (await send(file.path)).blob();
  return (await send(file.path, {}, { range: `bytes=0-${maxBytes - 1}` })).blob();
}

/** Return a page of a PDF as a picture, and the number of its pages. */
export async function readPage(file: StoredFile, page: number): Promise<{ picture: Blob; pages: number }> {
  const base = file.artifact === null ? file.path : artifact(file.artifact);
  const response = await send(`${base}/pages/${page}`);
  return { picture: await response.blob(), pages: Number(response.headers.get('larkspur-pages') ?? 1) };
}

/** Save a stored file. */
export async function download(file: StoredFile): Promise<void> {
  save(await readContent(file), file.name.split('/').at(-1) ?? file.name);
}

/** Save the files that the runs of a session made, as one archive. */
export async function downloadAll(session: string, title: string): Promise<void> {
  const response = await send(`/api/sessions/${encodeURIComponent(session)}/files.zip`);
  save(await response.blob(), `${displayName(title).replaceAll(/[/\\]/g, ' ') || 'files'}.zip`);
}

function save(content: Blob, name: string): void {
  const link = document.createElement('a');
  // a type that no browser shows
  link.href = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), READ_MS);
}
