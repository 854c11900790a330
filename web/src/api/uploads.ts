/** Uploading files: they are stored first, then referred to in the task. */
import { api, type Attachment } from './client';
import type { AttachmentInput } from './client';
import type { Messages } from '../i18n/catalog';

const MEDIA_TYPE = /^[\w!#$&^.+-]{1,64}\/[\w!#$&^.+-]{1,64}$/;

export async function upload(file: File, t: Messages): Promise<AttachmentInput> {
  const mediaType = MEDIA_TYPE.test(file.type) ? file.type : 'application/octet-stream';
  const stored: Attachment = await api.upload(file.name, mediaType, await base64(file, t));
  return { name: stored.name, media_type: stored.media_type, uri: stored.uri };
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
