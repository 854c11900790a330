/** Commands and changes in full, as the user must see them to decide. */
import { useState } from 'react';
import { useDecisionMessages } from '../../i18n/decision';

/** The number of lines that fit without scrolling. */
const VISIBLE_LINES = 10;
const MAX_LINES = 400;

const BOX =
  'exact max-h-[min(15rem,28dvh)] overflow-auto rounded-lg border border-line bg-side px-3 py-2 text-[13px]';

/** A command or a call in full, with its number of lines if it must be scrolled. */
export function CodeText({ text, label }: { text: string; label: string }) {
  const d = useDecisionMessages();
  const count = text.split('\n').length;
  return (
    <>
      {count > VISIBLE_LINES && <p className="mb-1 text-xs text-warn">{d.lines(count)}</p>}
      <pre tabIndex={0} dir="ltr" aria-label={label} className={BOX}>
        {text}
      </pre>
    </>
  );
}

/** A unified diff, of a change that is proposed or made. */
export function Diff({ text, isMade = false }: { text: string; isMade?: boolean }) {
  const d = useDecisionMessages();
  const [all, setAll] = useState(false);
  const lines = text.replace(/\n$/, '').split('\n');
  const shown = all ? lines : lines.slice(0, MAX_LINES);
  return (
    <>
      <pre tabIndex={0} dir="ltr" aria-label={isMade ? d.changed : d.change} className={`${BOX} px-0!`}>
        {shown.map((line, at) => (
          // oxlint-disable-next-line react/no-array-index-key -- a line has no other name
          <span key={at} className={`block px-3 ${toneOf(line)}`}>
            {line}
            {'\n'}
          </span>
        ))}
      </pre>
      {!all && lines.length > MAX_LINES && (
        <button type="button" onClick={() => setAll(true)} className="mt-1 text-[13px] text-accent hover:underline">
          {d.moreLines(lines.length - MAX_LINES)}
        </button>
      )}
    </>
  );
}

function toneOf(line: string): string {
  if (/^(\+\+\+|---|@@)/.test(line)) return 'text-dim';
  if (line.startsWith('+')) return 'bg-added';
  return line.startsWith('-') ? 'bg-removed' : '';
}
