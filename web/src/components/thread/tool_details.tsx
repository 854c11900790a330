import { useState } from 'react';
import type { ToolLine } from '../../state/session_state';
import { formatCount } from '../../lib/format';
import { useMessages } from '../../i18n/catalog';
import { withoutMarks } from '../../lib/marks';
import { Diff } from '../decision/code_text';
import { FileChips } from '../files/file_chips';

/** The arguments, the output so far, and the result of a tool call. */
export function ToolDetails({ line, output }: { line: ToolLine; output: string }) {
  const t = useMessages();
  return (
    <>
      {line.diff === '' ? (
        <TextBlock label={t.arguments} text={argumentText(line.arguments) || line.denied} />
      ) : (
        <div className="mb-2">
          <Diff text={line.diff} isMade />
        </div>
      )}
      {line.status === 'running' && <TextBlock label={t.output} text={output} />}
      {line.error !== '' && line.stopped === undefined && <TextBlock label={t.error} text={withoutMarks(line.error)} tone="text-bad" />}
      {line.stopped !== undefined && <TextBlock label={t.output} text={line.error.split('\n').slice(0, -1).join('\n')} />}
      {line.status !== 'running' && line.error === '' && line.diff === '' && (
        <TextBlock label={t.result} text={withoutMarks(line.result)} tone={line.status === 'failed' ? 'text-bad' : ''} />
      )}
      {line.attachments.length > 0 && (
        <FileChips files={line.attachments} />
      )}
    </>
  );
}

/** Return the arguments as lines of text; values other than text as JSON. */
function argumentText(given: Record<string, unknown>): string {
  return Object.entries(given)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}

const MAX_SHOWN_CHARS = 20_000;

function TextBlock({ label, text, tone = '' }: { label: string; text: string; tone?: string }) {
  const t = useMessages();
  const [all, setAll] = useState(false);
  const long = text.length > MAX_SHOWN_CHARS;
  return (
    <div className="mb-2">
      <div className="mb-0.5 text-xs text-dim">{label}</div>
      <pre
        tabIndex={0}
        aria-label={label}
        className={`max-h-80 overflow-auto rounded-lg border border-line bg-side px-3 py-2 font-mono text-[13px] break-words whitespace-pre-wrap ${tone}`}
      >
        {text === '' ? <span className="text-dim">{t.nothing}</span> : long && !all ? text.slice(0, MAX_SHOWN_CHARS) : text}
      </pre>
      {long && !all && (
        <button type="button" onClick={() => setAll(true)} className="mt-1 text-[13px] text-accent hover:underline">
          {t.showAll(formatCount(text.length))}
        </button>
      )}
    </div>
  );
}
