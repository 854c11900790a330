import { useState, type FormEvent } from 'react';
import { ApiError } from '../api';
import { logIn } from '../entering';
import { useWords } from '../words';

/** Asks for a one-time code: the whole page, or `small` above a message that is kept. */
export function Login({ small = false, onEntered }: { small?: boolean; onEntered: () => void }) {
  const words = useWords();
  const [code, setCode] = useState('');
  const [refused, setRefused] = useState('');

  const enter = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await logIn(code);
      onEntered();
    } catch (error) {
      const known = error instanceof ApiError && error.status !== 0;
      setRefused(known ? error.message : words.unreachable);
    }
  };

  const form = (
    <form onSubmit={enter} className="flex flex-wrap items-center gap-2">
      <input
        aria-label={words.code}
        placeholder={words.code}
        autoComplete="one-time-code"
        spellCheck={false}
        value={code}
        onChange={(event) => setCode(event.target.value)}
        className="min-w-0 flex-1 rounded-lg border border-line bg-bg px-3 py-1.5 font-mono text-sm"
      />
      <button type="submit" className="rounded-lg bg-accent px-3 py-1.5 font-medium text-on-accent">
        {words.logIn}
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
      <section aria-label={words.loginTitle} className="mb-2 rounded-xl border border-warn p-3">
        <p className="mb-2">{words.loginKept}</p>
        {form}
      </section>
    );
  }
  return (
    <main className="flex h-full items-center justify-center p-6">
      <div className="w-full max-w-sm">
        <h1 className="mb-1 text-lg font-semibold">{words.product}</h1>
        <p className="mb-4 text-dim">{words.loginText}</p>
        {form}
      </div>
    </main>
  );
}
