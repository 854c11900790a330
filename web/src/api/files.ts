/** Files: they are uploaded before a task refers to them, and downloaded with the login. */
import { api, send, type Attachment } from './client';
import type { AttachmentInput } from './client';
import type { Messages } from '../i18n/catalog';

const MEDIA_TYPE = /^[\w!#$&^.+-]{1,64}\/[\w!#$&^.+-]{1,64}$/;
/** Browsers read the content after the click; its memory is freed after this time. */
const READ_MS = 60_000;

export async function upload(file: File, t: Messages): Promise<AttachmentInput> {
  const mediaType = MEDIA_TYPE.test(file.type) ? file.type : 'application/octet-stream';
  const stored: Attachment = await api.upload(file.name, mediaType, await base64(file, t));
  return { name: stored.name, media_type: stored.media_type, uri: stored.uri };
}

/** Save a stored file. Its size is limited by that of uploads and of files that tools write. */
export async function download(file: Attachment): Promise<void> {
  const response = await send(`/api/attachments/${file.sha256}`);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await response.blob());
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), READ_MS);
}

function base64(file: File, t: Messages): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => {
      resolve(String(reader.result).replace(/^[^,]*,/, ''));
    });
    reader.addEventListener('error', () => reject(new Error(t.unreadable(file.name))));
    reader.readAsDataURL(file);
  });
}
