import { useState, type FormEvent } from 'react';
import { ApiError } from '../../api/client';
import { logIn } from '../../api/login';
import { useMessages } from '../../i18n/catalog';

/** Asks for a one-time code: the whole page, or `small` above a message that is kept. */
export function Login({ small = false, onEntered }: { small?: boolean; onEntered: () => void }) {
  const t = useMessages();
  const [code, setCode] = useState('');
  const [refused, setRefused] = useState('');

  const enter = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await logIn(code);
      onEntered();
    } catch (error) {
      const known = error instanceof ApiError && error.status !== 0;
      setRefused(known ? error.message : t.unreachable);
    }
  };

  const form = (
    <form onSubmit={enter} className="flex flex-wrap items-center gap-2">
      <input
        aria-label={t.code}
        placeholder={t.code}
        autoComplete="one-time-code"
        spellCheck={false}
        value={code}
        onChange={(event) => setCode(event.target.value)}
        className="min-w-0 flex-1 rounded-lg border border-line bg-bg px-3 py-1.5 font-mono text-sm"
      />
      <button type="submit" className="rounded-lg bg-accent px-3 py-1.5 font-medium text-on-accent">
        {t.logIn}
      </button>
      {refused !== '' && (
        <p role="alert" className="w-full text-bad">
          {refused}
        </p>
      )}
    </form>
  );
  if (small) {
    return (
      <section aria-label={t.loginTitle} className="mb-2 rounded-xl border border-warn p-3">
        <p className="mb-2">{t.loginKept}</p>
        {form}
      </section>
    );
  }
  return (
    <main className="flex h-full items-center justify-center p-6">
      <div className="w-full max-w-sm">
        <h1 className="mb-1 text-lg font-semibold">{t.product}</h1>
        <p className="mb-4 text-dim">{t.loginText}</p>
        {form}
      </div>
    </main>
  );
}
