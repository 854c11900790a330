import { useState, type FormEvent } from 'react';
import { logIn, wasLinkRejected } from '../../api/login';
import { useMessages } from '../../i18n/catalog';
import { useLoginMessages } from '../../i18n/login';

/** The login form: a whole page, or `small` above the composer. */
export function Login({ small = false, onLoggedIn }: { small?: boolean; onLoggedIn: () => void }) {
  const t = useMessages();
  const l = useLoginMessages();
  const [code, setCode] = useState('');
  const [failure, setFailure] = useState(() => (!small && wasLinkRejected() ? l.used : ''));

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await logIn(code);
      onLoggedIn();
    } catch (error) {
      setFailure((error as Error).message || t.unreachable);
    }
  };

  const form = (
    <form onSubmit={submit} className="flex flex-wrap items-center gap-2">
      <input
        aria-label={l.code}
        placeholder={l.code}
        autoComplete="one-time-code"
        spellCheck={false}
        value={code}
        onChange={(event) => setCode(event.target.value)}
        className="min-w-0 flex-1 rounded-lg border border-line bg-bg px-3 py-1.5 font-mono text-sm"
      />
      <button type="submit" className="rounded-lg bg-accent px-3 py-1.5 font-medium text-on-accent">
        {l.logIn}
      </button>
      {failure !== '' && (
        <p role="alert" className="w-full text-bad">
          {failure}
        </p>
      )}
    </form>
  );
  if (small) {
    return (
      <section aria-label={l.title} className="mb-2 rounded-xl border border-warn p-3">
        <p className="mb-2">{l.expired}</p>
        {form}
      </section>
    );
  }
  return (
    <main className="flex h-full items-center justify-center p-6">
      <div className="w-full max-w-sm">
        <h1 className="mb-1 text-lg font-semibold">{t.product}</h1>
        <p className="mb-4 text-dim">{l.text}</p>
        {form}
      </div>
    </main>
  );
}
