/** Files on their way to the server: kept there first, then named in the task. */
import { api, type Attachment } from './client';
import type { AttachmentInput } from './client';
import type { Messages } from '../i18n/catalog';

/** A body may have 20 MiB, and base64 makes three bytes four. */
export const MAX_FILE_BYTES = 14_000_000;
const MEDIA_TYPE = /^[\w!#$&^.+-]{1,64}\/[\w!#$&^.+-]{1,64}$/;

export async function upload(file: File, t: Messages): Promise<AttachmentInput> {
  const media = MEDIA_TYPE.test(file.type) ? file.type : 'application/octet-stream';
  const kept: Attachment = await api.keep(file.name, media, await base64(file, t));
  return { name: kept.name, media_type: kept.media_type, uri: kept.uri };
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
