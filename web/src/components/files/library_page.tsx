import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { Menu, Search, Star } from 'lucide-react';
import { useEffect, useState } from 'react';
import { changeArtifact, fileOfArtifact, listArtifacts, type ArtifactFilter, type ArtifactView, type StoredFile } from '../../api/files';
import { useMessages } from '../../i18n/catalog';
import { useFileMessages } from '../../i18n/files';
import { formatSize } from '../../lib/format';
import { usePreferences } from '../../state/preferences';
import { useAttempt } from '../layout/use_attempt';
import { FilePreview, StarButton } from './file_preview';
import { Thumbnail } from './thumbnail';

const PAGE_SIZE = 24;
const SEARCH_DELAY_MS = 250;
const EVERYTHING: ArtifactFilter = { q: '', type: '', favourite: false };
const GRID = 'grid grid-cols-[repeat(auto-fill,minmax(min(11.5rem,42vw),1fr))] gap-3';

/** The files that runs of all sessions made. */
export function LibraryPage({ onMenu }: { onMenu: () => void }) {
  const t = useMessages();
  const f = useFileMessages();
  const [text, setText] = useState('');
  const [filter, setFilter] = useState(EVERYTHING);
  const [shown, setShown] = useState<StoredFile | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setFilter((now) => ({ ...now, q: text.trim() })), SEARCH_DELAY_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <>
      <header className="flex h-12 flex-none items-center gap-2 border-b border-line px-3">
        <button type="button" className="bar-button min-[720px]:hidden" aria-label={t.menu} onClick={onMenu}>
          <Menu size={18} aria-hidden="true" />
        </button>
        <h1 className="font-semibold">{t.library}</h1>
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto max-w-[1080px] px-6 py-4 max-[719px]:px-4">
          <div role="search" className="mb-4 flex flex-wrap items-center gap-2">
            <label className="flex h-9 min-w-40 flex-1 items-center gap-2 rounded-lg border border-line bg-raised px-2.5 focus-within:border-accent">
              <Search size={15} aria-hidden="true" className="flex-none text-dim" />
              <input
                type="search"
                aria-label={f.search}
                placeholder={f.search}
                value={text}
                maxLength={200}
                onChange={(event) => setText(event.target.value)}
                className="min-w-0 flex-1 bg-transparent outline-none!"
              />
            </label>
            <select
              aria-label={f.type}
              value={filter.type}
              onChange={(event) => setFilter({ ...filter, type: event.target.value as ArtifactFilter['type'] })}
              className="h-9 rounded-lg border border-line bg-raised px-2"
            >
              {Object.entries(f.types).map(([type, name]) => (
                <option key={type} value={type}>
                  {name}
                </option>
              ))}
            </select>
            <button
              type="button"
              aria-pressed={filter.favourite}
              onClick={() => setFilter({ ...filter, favourite: !filter.favourite })}
              className={`choice h-9 ${filter.favourite ? 'border-accent! text-accent' : ''}`}
            >
              <Star size={15} aria-hidden="true" fill={filter.favourite ? 'currentColor' : 'none'} />
              {f.favourites}
            </button>
          </div>
          <Results key={JSON.stringify(filter)} filter={filter} onOpen={setShown} />
        </div>
      </div>
      {shown !== null && <FilePreview file={shown} onClose={() => setShown(null)} />}
    </>
  );
}

function Results({ filter, onOpen }: { filter: ArtifactFilter; onOpen: (file: StoredFile) => void }) {
  const [cursors, setCursors] = useState(['']);
  return (
    <ul className={GRID}>
      {cursors.map((cursor, at) => (
        <ResultPage
          key={cursor}
          filter={filter}
          cursor={cursor}
          isLast={at === cursors.length - 1}
          onOpen={onOpen}
          onMore={(next) => setCursors([...cursors, next])}
        />
      ))}
    </ul>
  );
}

function ResultPage(props: {
  filter: ArtifactFilter;
  cursor: string;
  isLast: boolean;
  onOpen: (file: StoredFile) => void;
  onMore: (cursor: string) => void;
}) {
  const { filter, cursor, isLast } = props;
  const t = useMessages();
  const f = useFileMessages();
  const { data, error, refetch } = useQuery({
    queryKey: ['artifacts', filter, cursor],
    queryFn: () => listArtifacts(filter, cursor, PAGE_SIZE),
    placeholderData: keepPreviousData,
  });
  if (error !== null) {
    return (
      <li role="alert" className="col-span-full py-[16vh] text-center text-bad">
        <p className="mb-3">{error.message || f.failed}</p>
        <button type="button" className="choice text-ink" onClick={() => void refetch()}>
          {f.again}
        </button>
      </li>
    );
  }
  if (data === undefined) return <li className="col-span-full py-8 text-center text-dim">{t.loading}</li>;
  if (cursor === '' && data.artifacts.length === 0) {
    const isFiltered = filter.q !== '' || filter.type !== '' || filter.favourite;
    return <li className="col-span-full py-[18vh] text-center text-balance text-dim">{isFiltered ? f.nothing : f.emptyLibrary}</li>;
  }
  const { next_cursor: next } = data;
  return (
    <>
      {data.artifacts.map((one) => (
        <Card key={one.artifact_id} artifact={one} onOpen={props.onOpen} />
      ))}
      {isLast && next !== null && (
        <li className="col-span-full flex justify-center py-3">
          <button type="button" className="choice" onClick={() => props.onMore(next)}>
            {f.more}
          </button>
        </li>
      )}
    </>
  );
}

function Card({ artifact, onOpen }: { artifact: ArtifactView; onOpen: (file: StoredFile) => void }) {
  const f = useFileMessages();
  const queries = useQueryClient();
  const language = usePreferences((preferences) => preferences.language);
  const [failure, , attempt] = useAttempt();
  const file = fileOfArtifact(artifact);
  const date = new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en-GB', { day: 'numeric', month: 'short' });
  const toggle = async () => {
    await changeArtifact(artifact.artifact_id, { favourite: !artifact.favourite });
    await queries.invalidateQueries({ queryKey: ['artifacts'] });
    await queries.invalidateQueries({ queryKey: ['artifact', artifact.artifact_id] });
  };
  return (
    <li className="relative min-w-0">
      <button
        type="button"
        onClick={() => onOpen(file)}
        className="flex h-full w-full flex-col overflow-hidden rounded-xl border border-line bg-raised text-left hover:border-dim"
      >
        <Thumbnail file={file} icon={36} className="h-28 w-full border-b border-line" />
        <span className="block w-full min-w-0 px-3 py-2">
          <span className="sr-only">{f.open} </span>
          <span className="isolate-text block truncate font-medium">{file.name}</span>
          <span className="block truncate text-xs text-dim tabular-nums">
            {formatSize(file.size)} · {date.format(new Date(artifact.created))}
            {artifact.version > 1 && ` · ${f.version(artifact.version)}`}
          </span>
          <span className="isolate-text block truncate text-[13px] text-dim">{failure || artifact.caption}</span>
        </span>
      </button>
      <StarButton artifact={artifact} onToggle={() => void attempt(toggle)} className="absolute! top-2 right-2 border border-line bg-raised" />
    </li>
  );
}
