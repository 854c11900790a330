/** Texts that a person judges: exactly as they are, to the last line. */
import { useState } from 'react';
import { useWords } from '../words';

/** So many lines can be seen at once. */
const SEEN = 10;
const MOST_LINES = 400;

const BOX =
  'exact max-h-[min(15rem,28dvh)] overflow-auto rounded-lg border border-line bg-side px-3 py-2 text-[13px]';

/** A command or a call in full; when not all of it is seen, a line above says how much there is. */
export function Exact({ text, label }: { text: string; label: string }) {
  const words = useWords();
  const count = text.split('\n').length;
  return (
    <>
      {count > SEEN && <p className="mb-1 text-xs text-warn">{words.lines(count)}</p>}
      <pre tabIndex={0} dir="ltr" aria-label={label} className={BOX}>
        {text}
      </pre>
    </>
  );
}

/** What a call would change: a unified diff, whose signs say the same as its colours. */
export function Diff({ text }: { text: string }) {
  const words = useWords();
  const [all, setAll] = useState(false);
  const lines = text.replace(/\n$/, '').split('\n');
  const shown = all ? lines : lines.slice(0, MOST_LINES);
  return (
    <>
      <pre tabIndex={0} dir="ltr" aria-label={words.change} className={`${BOX} px-0!`}>
        {shown.map((line, at) => (
          // oxlint-disable-next-line react/no-array-index-key -- a line has no other name
          <span key={at} className={`block px-3 ${toneOf(line)}`}>
            {line}
            {'\n'}
          </span>
        ))}
      </pre>
      {!all && lines.length > MOST_LINES && (
        <button type="button" onClick={() => setAll(true)} className="mt-1 text-[13px] text-accent hover:underline">
          {words.moreLines(lines.length - MOST_LINES)}
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
