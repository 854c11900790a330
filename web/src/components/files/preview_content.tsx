import { Suspense, useEffect, useMemo, useState, type ReactNode } from 'react';
import type { StoredFile } from '../../api/files';
import { useMessages } from '../../i18n/catalog';
import { useFileMessages } from '../../i18n/files';
import { parseTable } from '../../lib/csv';
import { previewKind, type PreviewKind } from '../../lib/file_kind';
import { lazyComponent } from '../../lib/lazy';
import { formatSize } from '../../lib/format';
import { MarkdownView } from '../thread/markdown_view';
import { useContent, useContentRef, usePage } from './content';
import { FileIcon } from './file_icon';

const HtmlFrame = lazyComponent(() => import('./html_frame').then((module) => module.HtmlFrame));

const MAX_ROWS = 200;
const MAX_TEXT_BYTES = 256 * 1024;
const MAX_WHOLE_BYTES = 32 * 1024 * 1024;
const WHOLE: ReadonlySet<PreviewKind> = new Set(['image', 'svg', 'html']);

/** What a file shows of itself, without running anything that it contains. */
export function PreviewContent({ file }: { file: StoredFile }) {
  const t = useMessages();
  const f = useFileMessages();
  const kind = previewKind(file.name, file.mediaType);
  const isWhole = WHOLE.has(kind);
  const isTooLarge = isWhole && file.size > MAX_WHOLE_BYTES;
  const isShown = kind !== 'none' && !isTooLarge && file.size > 0;
  const isRead = isShown && kind !== 'pdf';
  const { data, error, refetch } = useContent(file, isWhole ? Infinity : MAX_TEXT_BYTES, isRead);
  if (file.size === 0) return <Note file={file} text={f.emptyFile} />;
  if (kind === 'pdf') return <PdfPreview file={file} />;
  if (!isShown) return <Note file={file} text={isTooLarge ? f.tooLargePreview : f.noPreview} />;
  if (error !== null) return <Failure file={file} text={error.message || t.unreachable} onAgain={() => void refetch()} />;
  if (data === undefined) return <p className="m-auto p-6 text-dim">{t.loading}</p>;
  // as a picture, an SVG runs nothing and loads nothing
  if (kind === 'svg') return <Picture file={file} content={data} mediaType="image/svg+xml" />;
  if (kind === 'image') return <Picture file={file} content={data} mediaType={file.mediaType} />;
  return <TextPreview file={file} kind={kind} content={data} />;
}

function Note({ file, text, children }: { file: StoredFile; text: string; children?: ReactNode }) {
  return (
    <div className="m-auto flex flex-col items-center gap-3 p-8 text-center text-dim">
      <FileIcon name={file.name} mediaType={file.mediaType} size={48} />
      <p>{text}</p>
      {children}
    </div>
  );
}

function Picture({ file, content, mediaType }: { file: StoredFile; content: Blob; mediaType: string }) {
  const f = useFileMessages();
  const [isBroken, setIsBroken] = useState(false);
  const picture = useContentRef(content, mediaType);
  if (isBroken) return <Note file={file} text={f.noPreview} />;
  return <img ref={picture} alt={file.name} onError={() => setIsBroken(true)} className="m-auto max-h-full max-w-full object-contain" />;
}

/** Pages as pictures that the server draws: browsers show PDF files in no sandboxed frame. */
function PdfPreview({ file }: { file: StoredFile }) {
  const t = useMessages();
  const f = useFileMessages();
  const [page, setPage] = useState(1);
  const { data, error, refetch } = usePage(file, page);
  const picture = useContentRef(data?.picture, data?.picture.type ?? '');
  if (error !== null) return <Failure file={file} text={error.message || t.unreachable} onAgain={() => void refetch()} />;
  if (data === undefined) return <p className="m-auto p-6 text-dim">{t.loading}</p>;
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      <div role="region" tabIndex={0} aria-label={file.name} className="flex min-h-0 flex-1 overflow-auto bg-side p-4">
        <img ref={picture} alt={f.page(page, data.pages)} className="m-auto max-w-full bg-white shadow" />
      </div>
      {data.pages > 1 && (
        <div className="flex flex-none items-center justify-center gap-3 border-t border-line px-5 py-1.5 text-[13px]">
          <button type="button" className="choice" disabled={page === 1} onClick={() => setPage(page - 1)}>
            {f.previousPage}
          </button>
          <span className="tabular-nums">{f.page(page, data.pages)}</span>
          <button type="button" className="choice" disabled={page >= data.pages} onClick={() => setPage(page + 1)}>
            {f.nextPage}
          </button>
        </div>
      )}
    </div>
  );
}

function Failure({ file, text, onAgain }: { file: StoredFile; text: string; onAgain: () => void }) {
  const f = useFileMessages();
  return (
    <Note file={file} text={text}>
      <button type="button" className="choice" onClick={onAgain}>
        {f.again}
      </button>
    </Note>
  );
}

function TextPreview({ file, kind, content }: { file: StoredFile; kind: PreviewKind; content: Blob }) {
  const t = useMessages();
  const f = useFileMessages();
  const [text, setText] = useState<string>();
  useEffect(() => {
    let isShown = true;
    void content.text().then((read) => isShown && setText(read));
    return () => {
      isShown = false;
    };
  }, [content]);
  if (text === undefined) return <p className="m-auto p-6 text-dim">{t.loading}</p>;
  if (kind === 'html') {
    return (
      <Limited note={f.isolated}>
        <Suspense fallback={null}>
          <HtmlFrame title={file.name} html={text} className="min-h-0 w-full flex-1" />
        </Suspense>
      </Limited>
    );
  }
  if (kind === 'table') return <TablePreview text={text} />;
  return (
    <Limited note={content.size < file.size ? f.cut(formatSize(content.size)) : ''}>
      {kind === 'markdown' ? (
        <div role="region" tabIndex={0} aria-label={file.name} className="min-h-0 flex-1 overflow-auto px-5 py-4">
          <MarkdownView text={text} />
        </div>
      ) : (
        <pre tabIndex={0} aria-label={file.name} className="exact min-h-0 flex-1 overflow-auto px-5 py-4 text-[13px]">
          {text}
        </pre>
      )}
    </Limited>
  );
}

function TablePreview({ text }: { text: string }) {
  const f = useFileMessages();
  const table = useMemo(() => parseTable(text, MAX_ROWS + 1), [text]);
  const [head = [], ...rows] = table.rows;
  return (
    <Limited note={table.more ? f.rows(MAX_ROWS) : ''}>
      <div role="region" tabIndex={0} aria-label={f.types.table} className="min-h-0 flex-1 overflow-auto">
        <table className="min-w-full text-[13px] tabular-nums">
          <thead>
            <tr>
              <Cells cells={head} head />
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              // the rows of a file do not move
              // oxlint-disable-next-line react/no-array-index-key
              <tr key={at} className="hover:bg-hover">
                <Cells cells={row} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Limited>
  );
}

const MAX_COLUMNS = 100;

function Cells({ cells, head = false }: { cells: readonly string[]; head?: boolean }) {
  return cells.slice(0, MAX_COLUMNS).map((text, at) =>
    head ? (
      // oxlint-disable-next-line react/no-array-index-key
      <th key={at} scope="col" className="sticky top-0 max-w-80 border-b border-line bg-side px-3 py-1.5 text-left font-semibold first:pl-5">
        <span className="isolate-text line-clamp-3">{text}</span>
      </th>
    ) : (
      // oxlint-disable-next-line react/no-array-index-key
      <td key={at} className="max-w-80 min-w-12 border-b border-line px-3 py-1 align-top first:pl-5">
        <span className="isolate-text line-clamp-3">{text}</span>
      </td>
    ),
  );
}

function Limited({ note, children }: { note: string; children: ReactNode }) {
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      {children}
      {note !== '' && <p className="flex-none border-t border-line px-5 py-1.5 text-xs text-dim">{note}</p>}
    </div>
  );
}
