import { Check, Copy } from 'lucide-react';
import { Suspense, useEffect, useState } from 'react';
import { useRunActionMessages } from '../../i18n/run_actions';
import { copyText } from '../../lib/clipboard';
import { lazyComponent } from '../../lib/lazy';

const Diagram = lazyComponent(async () => (await import('./diagram')).Diagram);

/** Longer code is shown without colours: it would take too long. */
const MAX_HIGHLIGHTED_CHARS = 50_000;
const COPIED_MS = 1_500;

/** A block of code with its language, a button that copies it, and colours once it is complete. */
export function CodeBlock({ code, language, growing }: { code: string; language: string; growing: boolean }) {
  const a = useRunActionMessages();
  const html = useHighlighted(code, language, growing);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(code);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  const source = (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls
    <pre tabIndex={0} aria-label={language === '' ? a.code : language}>
      {html === null ? <code>{code}</code> : <code dangerouslySetInnerHTML={{ __html: html }} />}
    </pre>
  );
  return (
    <div className="code-block">
      <div className="flex h-7 items-center justify-between pr-1 pl-3.5 font-sans text-xs text-dim">
        <span>{language}</span>
        <button type="button" className="bar-button h-6! w-6!" title={copied ? a.copied : a.copyCode} aria-label={copied ? a.copied : a.copyCode} onClick={() => void copy().catch(() => undefined)}>
          {copied ? <Check size={12} aria-hidden="true" /> : <Copy size={12} aria-hidden="true" />}
        </button>
      </div>
      {language === 'mermaid' && !growing ? (
        <Suspense fallback={source}>
          <Diagram code={code}>{source}</Diagram>
        </Suspense>
      ) : (
        source
      )}
    </div>
  );
}

function useHighlighted(code: string, language: string, growing: boolean): string | null {
  const [done, setDone] = useState<{ code: string; html: string | null } | null>(null);
  const isWanted = !growing && language !== '' && code.length <= MAX_HIGHLIGHTED_CHARS;
  useEffect(() => {
    if (!isWanted) return undefined;
    let isCurrent = true;
    const colour = async () => {
      const { highlight } = await import('../../lib/highlight');
      if (isCurrent) setDone({ code, html: highlight(code, language.toLowerCase()) });
    };
    colour().catch(() => undefined); // without the chunk the code has no colours
    return () => {
      isCurrent = false;
    };
  }, [code, isWanted, language]);
  return isWanted && done?.code === code ? done.html : null;
}
