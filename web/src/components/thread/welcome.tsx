import { Link } from 'wouter';
import type { MeView, Mode } from '../../api/client';
import { EXAMPLE_EVENT } from '../../state/draft';
import { setPreferences, usePreferences } from '../../state/preferences';
import { setTaskOptions } from '../../state/task_options';
import { useWelcomeMessages } from '../../i18n/welcome';

function submitExample(text: string, mode: Mode): void {
  setTaskOptions('new', { mode });
  dispatchEvent(new CustomEvent(EXAMPLE_EVENT, { detail: text }));
}

/** The start page: one sentence and examples that can be clicked. */
export function Welcome({ me }: { me: MeView | undefined }) {
  const t = useWelcomeMessages();
  const isDismissed = usePreferences((preferences) => preferences.offlineNoticeDismissed);
  return (
    <div className="flex min-h-0 flex-1 flex-col items-center justify-center overflow-y-auto p-6">
      <div className="w-full max-w-[560px]">
        <h2 className="text-[17px] font-semibold">{t.title}</h2>
        <p className="mt-6 mb-1.5 text-xs text-dim">{t.examplesTitle}</p>
        <ul className="divide-y divide-line rounded-xl border border-line">
          {t.examples.map((example) => (
            <li key={example.text}>
              <button
                type="button"
                onClick={() => submitExample(example.text, me?.isolated ? 'run' : example.mode)}
                className="flex w-full items-start gap-1 px-3 py-2.5 text-left first:rounded-t-xl hover:bg-hover"
              >
                <span className="glyph text-dim" aria-hidden="true">
                  &gt;
                </span>
                {example.text}
              </button>
            </li>
          ))}
        </ul>
        {me?.provider === 'offline' && !isDismissed && (
          <p className="mt-4 flex flex-wrap items-start gap-x-3 text-[13px] text-dim">
            <span>{t.offline}</span>
            <Link href="/settings/models#key" className="flex-none text-accent hover:underline">
              {t.addKey}
            </Link>
            <button type="button" onClick={() => setPreferences({ offlineNoticeDismissed: true })} className="flex-none text-accent hover:underline">
              {t.dismiss}
            </button>
          </p>
        )}
      </div>
    </div>
  );
}
