import { memo, useMemo, useState, type CSSProperties } from 'react';
import { parseBlocks, IncrementalBlocks, render, type Block } from '../../lib/markdown';
import { useMessages } from '../../i18n/catalog';

/** A block is rendered again only when its source changes. */
const Shown = memo(
  function Shown({ block }: { block: Block }) {
    return <div dangerouslySetInnerHTML={{ __html: render(block) }} />;
  },
  (before, after) => before.block.raw === after.block.raw,
);

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
        <Shown key={index} block={block} />
      ))}
    </div>
  );
}
