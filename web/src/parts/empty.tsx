import type { MeView } from '../api';
import { prefer, usePreferences, type Mode } from '../preferences';
import { useWords } from '../words';

export const EXAMPLE = 'larkspur.example';

function take(text: string, mode: string): void {
  prefer({ mode: mode as Mode });
  dispatchEvent(new CustomEvent(EXAMPLE, { detail: text }));
}

/** One sentence and three things to try; the composer takes what is clicked. */
export function Empty({ me }: { me: MeView | undefined }) {
  const words = useWords();
  const told = usePreferences((one) => one.told);
  return (
    <div className="flex min-h-0 flex-1 flex-col items-center justify-center overflow-y-auto p-6">
      <div className="w-full max-w-[560px]">
        <h2 className="text-[17px] font-semibold">{words.emptyLead}</h2>
        <p className="mt-6 mb-1.5 text-xs text-dim">{words.emptyTry}</p>
        <ul className="divide-y divide-line rounded-xl border border-line">
          {words.examples.map((example) => (
            <li key={example.text}>
              <button
                type="button"
                onClick={() => take(example.text, example.mode)}
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
        {me?.provider === 'offline' && !told && (
          <p className="mt-4 flex items-start gap-3 text-[13px] text-dim">
            <span>
              <span aria-hidden="true">· </span>
              {words.offline}
            </span>
            <button type="button" onClick={() => prefer({ told: true })} className="flex-none text-accent hover:underline">
              {words.dismiss}
            </button>
          </p>
        )}
      </div>
    </div>
  );
}
