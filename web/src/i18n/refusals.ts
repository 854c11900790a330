/** Refusals of the server in Chinese, in a chunk of their own. */
import files from '../../../internal/i18n/file_reasons.zh.json';
import refusals from '../../../internal/i18n/refusals.zh.json';
import type { ErrorDetail } from '../api/types.gen';

/** By the code of the reason; reasons of files are identified by their English sentence. */
const REASONS = new Map(Object.entries({ ...files, ...refusals.reasons }));
const CODES = new Map(Object.entries(refusals.codes));

/** Return a refusal in Chinese. One without a text of its own has that of its code. */
export function translateRefusal({ code, message, reason_code: reason = '', params = {} }: ErrorDetail): string {
  const text = REASONS.get(reason) ?? CODES.get(code) ?? message;
  const values: Record<string, unknown> = { message, ...params };
  return text.replaceAll(/\{(\w+)\}/g, (part, name: string) => String(values[name] ?? part));
}
