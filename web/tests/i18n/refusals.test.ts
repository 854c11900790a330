import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { api, ApiError } from '../../src/api/client';
import type { ErrorDetail } from '../../src/api/types.gen';
import { translateRefusal } from '../../src/i18n/refusals';
import { setPreferences } from '../../src/state/preferences';

/** Every reason and code that the server has; a test of the server compares it with its errors. */
const CATALOG = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../internal/i18n/refusals.zh.json'), 'utf-8'),
) as Record<'reasons' | 'codes', Record<string, string>>;

function detail(given: Partial<ErrorDetail>): ErrorDetail {
  return { code: 'conflict', message: 'It is not possible now.', request_id: 'request-1', ...given };
}

describe('a refusal on a Chinese page', () => {
  it.each(Object.entries(CATALOG.reasons))('for the reason %s is Chinese with all of its parts', (reason, text) => {
    const names = [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');
    const params = Object.fromEntries(names.map((name) => [name, `«${name}»`]));
    const shown = translateRefusal(detail({ reason_code: reason, params }));
    expect(shown).not.toContain('possible');
    expect(shown).not.toMatch(/[{}]/);
    for (const name of names) expect(shown).toContain(`«${name}»`);
  });

  it.each(Object.keys(CATALOG.codes))('without a reason has the text of its code, here %j', (code) => {
    expect(translateRefusal(detail({ code }))).toMatch(/\p{Script=Han}/u);
  });

  it('of a file that cannot be shown says why', () => {
    const params = { kind: 'Excel' };
    const reason = 'The {kind} file is encrypted.';
    expect(translateRefusal(detail({ code: 'unreadable', reason_code: reason, params }))).toBe('Excel 文件已加密。');
  });

  it('of a newer server has the text of its code, else the sentence of the server', () => {
    expect(translateRefusal(detail({ reason_code: 'too_new' }))).toBe('现在无法这样做：It is not possible now.');
    expect(translateRefusal(detail({ code: 'too_new' }))).toBe('It is not possible now.');
  });
});

describe('a request that the server refuses', () => {
  const fetched = globalThis.fetch;
  beforeEach(() => {
    const error = detail({ code: 'conflict', message: 'This task has ended.', reason_code: 'task_ended', params: { status: 'failed' } });
    globalThis.fetch = () => Promise.resolve(Response.json({ error }, { status: 409 }));
  });
  afterEach(() => {
    globalThis.fetch = fetched;
  });

  it.each([
    ['en', 'This task has ended.'],
    ['zh', '任务已经结束。'],
  ] as const)('fails with the reason in the language of the page: %s', async (language, message) => {
    setPreferences({ language });
    const failure = await api.stop('task-1').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiError);
    expect(failure).toMatchObject({ status: 409, code: 'conflict', message });
  });
});
