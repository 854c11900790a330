import { memo, useEffect, useMemo, useRef, useState, type CSSProperties } from 'react';
import { codeOf, IncrementalBlocks, parseBlocks, render, type Block } from '../../lib/markdown';
import { useMessages } from '../../i18n/catalog';
import { CodeBlock } from './code_block';

/** A block is rendered again only when its source changes, or when it is complete. */
const Shown = memo(
  function Shown({ block, growing }: { block: Block; growing: boolean }) {
    const code = codeOf(block);
    if (code !== null) return <CodeBlock {...code} growing={growing} />;
    const html = render(block);
    return <Html key={html} html={html} />;
  },
  (before, after) => before.block.raw === after.block.raw && before.growing === after.growing,
);

function Html({ html }: { html: string }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const formulas = [...(box.current?.querySelectorAll<HTMLElement>('code[data-math]') ?? [])];
    if (formulas.length > 0) void showFormulas(formulas);
  }, []);
  return <div ref={box} dangerouslySetInnerHTML={{ __html: html }} />;
}

/** Replace the source of formulas; what cannot be read stays as it is. */
async function showFormulas(formulas: readonly HTMLElement[]): Promise<void> {
  const math = await import('../../lib/math').catch(() => null);
  for (const formula of formulas) {
    const html = math?.renderFormula(formula.textContent, formula.dataset['math'] === 'block');
    if (html) formula.outerHTML = html;
  }
}

/** Model text as Markdown. Text that is still streamed is `growing`. */
export function MarkdownView({ text, growing = false }: { text: string; growing?: boolean }) {
  const t = useMessages();
  const [cutter] = useState(() => new IncrementalBlocks());
  const blocks = useMemo(
    () => (growing ? cutter.blocks(text) : parseBlocks(text)),
    [cutter, text, growing],
  );
  const note = { '--image-note': JSON.stringify(t.remoteImage) } as CSSProperties;
  return (
    <div className="prose" style={note} dir="auto">
      {blocks.map((block, index) => (
        // blocks are only appended
        // oxlint-disable-next-line react/no-array-index-key
        <Shown key={index} block={block} growing={growing && index === blocks.length - 1} />
      ))}
    </div>
  );
}
