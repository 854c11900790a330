import { useQuery } from '@tanstack/react-query';
import { ChevronDown, ChevronRight, Folder } from 'lucide-react';
import { useState } from 'react';
import { fileOfWorkspace, listWorkspace, type TreeEntry } from '../../api/changes';
import { useChangeMessages } from '../../i18n/changes';
import { useMessages } from '../../i18n/catalog';
import { displayName } from '../../lib/file_name';
import { formatSize } from '../../lib/format';
import { FileIcon } from './file_icon';
import { FilePreview } from './file_preview';

/** The folders and files of the workspace, read when they are opened, with a search by name. */
export function WorkspaceTree({ session, revision }: { session: string; revision: number }) {
  const c = useChangeMessages();
  const [isOpen, setIsOpen] = useState(false);
  const [search, setSearch] = useState('');
  const [shown, setShown] = useState<TreeEntry | null>(null);
  const Chevron = isOpen ? ChevronDown : ChevronRight;
  return (
    <section className="mb-6">
      <h2>
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => setIsOpen(!isOpen)}
          className="mb-1.5 flex items-center gap-1 text-xs text-dim hover:text-ink"
        >
          <Chevron size={14} aria-hidden="true" />
          {c.workspace}
        </button>
      </h2>
      {isOpen && (
        <>
          <input
            type="search"
            aria-label={c.search}
            placeholder={c.search}
            value={search}
            maxLength={200}
            onChange={(event) => setSearch(event.target.value)}
            className="mb-1.5 w-full rounded-lg border border-line bg-transparent px-2 py-1"
          />
          <Entries session={session} revision={revision} path="" search={search.trim()} onShow={setShown} />
        </>
      )}
      {shown !== null && <FilePreview file={fileOfWorkspace(session, shown)} onClose={() => setShown(null)} />}
    </section>
  );
}

interface Place {
  session: string;
  revision: number;
  path: string;
  search: string;
  onShow: (entry: TreeEntry) => void;
}

function Entries(place: Place) {
  const t = useMessages();
  const c = useChangeMessages();
  const { session, revision, path, search } = place;
  const { data, error } = useQuery({
    queryKey: ['workspace', session, path, search, revision],
    queryFn: () => listWorkspace(session, path, search),
  });
  if (error !== null) return <p className="text-bad">{error.message || t.unreachable}</p>;
  if (data === undefined) return <p className="text-dim">{t.loading}</p>;
  if (data.entries.length === 0) return <p className="text-dim">{search === '' ? c.empty : c.nothing}</p>;
  return (
    <>
      <ul>
        {data.entries.map((entry) => (
          <li key={entry.path}>
            {entry.kind === 'folder' && entry.is_readable !== false ? (
              <FolderRow place={place} path={entry.path} />
            ) : (
              <FileRow entry={entry} whole={search !== ''} onShow={place.onShow} />
            )}
          </li>
        ))}
      </ul>
      {data.is_complete === false && <p className="mt-1 text-[13px] text-warn">{c.cut}</p>}
    </>
  );
}

const ROW = 'flex w-full min-w-0 items-center gap-1.5 rounded-lg px-1 py-0.5 text-left';

function FolderRow({ place, path }: { place: Place; path: string }) {
  const [isOpen, setIsOpen] = useState(false);
  const Chevron = isOpen ? ChevronDown : ChevronRight;
  return (
    <>
      <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)} className={`${ROW} hover:bg-hover`}>
        <Chevron size={14} aria-hidden="true" className="flex-none text-dim" />
        <Folder size={15} aria-hidden="true" className="flex-none text-dim" />
        <span dir="ltr" className="isolate-text truncate">{nameOf(path)}</span>
      </button>
      {isOpen && (
        <div className="ml-4">
          <Entries {...place} path={path} search="" />
        </div>
      )}
    </>
  );
}

function FileRow({ entry, whole, onShow }: { entry: TreeEntry; whole: boolean; onShow: (entry: TreeEntry) => void }) {
  const name = whole ? displayName(entry.path) : nameOf(entry.path);
  const row = (
    <>
      <FileIcon name={name} mediaType="" size={15} />
      <span dir="ltr" className="isolate-text min-w-0 flex-1 truncate" title={displayName(entry.path)}>{name}</span>
      <span className="flex-none text-xs text-dim tabular-nums">{entry.kind === 'file' && formatSize(entry.size ?? 0)}</span>
    </>
  );
  if (entry.kind !== 'file' || entry.is_readable === false) return <span className={`${ROW} text-dim`}>{row}</span>;
  return (
    <button type="button" onClick={() => onShow(entry)} className={`${ROW} hover:bg-hover`}>
      {row}
    </button>
  );
}

function nameOf(path: string): string {
  return displayName(path.split('/').at(-1) ?? path);
}
