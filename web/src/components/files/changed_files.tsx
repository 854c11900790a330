import { useQuery, useQueryClient } from '@tanstack/react-query';
import { RotateCcw, X } from 'lucide-react';
import { useState } from 'react';
import { fileOfWorkspace, listChanges, showDiff, undoChange, type FileChangeView } from '../../api/changes';
import { useChangeMessages } from '../../i18n/changes';
import { useMessages } from '../../i18n/catalog';
import { displayName } from '../../lib/file_name';
import { lazyComponent } from '../../lib/lazy';
import { useAttempt } from '../layout/use_attempt';
import { Dialog } from '../layout/dialog';
import { FilePreview } from './file_preview';

// The decision chunk imports this one: a static import of it here would be a circle.
const Diff = lazyComponent(() => import('../decision/code_text').then((module) => module.Diff));

/** The files of the workspace that runs of a session changed. `revision` grows with their changes. */
export function ChangedFiles({ session, revision }: { session: string; revision: number }) {
  const c = useChangeMessages();
  const [shown, setShown] = useState<FileChangeView | null>(null);
  const { data } = useQuery({ queryKey: ['changes', session, revision], queryFn: () => listChanges(session) });
  if (data === undefined || data.changes.length === 0) return null;
  const left = data.total - data.changes.length + data.omitted;
  return (
    <section className="mb-6">
      <h2 className="mb-1.5 text-xs text-dim">{c.changed}</h2>
      <ul aria-label={c.changed} className="-mx-2">
        {data.changes.map((one) => (
          <li key={one.change_id}>
            <button
              type="button"
              onClick={() => setShown(one)}
              className="flex w-full items-baseline gap-2 rounded-lg px-2 py-1 text-left hover:bg-hover"
            >
              <span dir="ltr" className={`isolate-text min-w-0 flex-1 truncate ${one.is_undone ? 'text-dim line-through' : ''}`} title={displayName(one.path)}>
                {displayName(one.path)}
              </span>
              <ChangeNote change={one} />
            </button>
          </li>
        ))}
      </ul>
      {left > 0 && <p className="mt-1 text-[13px] text-warn">{c.more(left)}</p>}
      {!data.is_complete && <p className="mt-1 text-[13px] text-warn">{c.incomplete}</p>}
      {shown !== null && <ChangeDialog session={session} change={shown} onClose={() => setShown(null)} />}
    </section>
  );
}

function ChangeNote({ change }: { change: FileChangeView }) {
  const c = useChangeMessages();
  const { added, removed } = change;
  return (
    <span className="flex-none text-xs text-dim tabular-nums">
      {change.is_undone ? c.undone : c.kinds[change.kind]}
      {added !== null && added > 0 && <span className="ml-1.5 text-ok">+{added}</span>}
      {removed !== null && removed > 0 && <span className="ml-1.5 text-bad">−{removed}</span>}
    </span>
  );
}

/** A change with its diff; it can be undone. */
function ChangeDialog({ session, change, onClose }: { session: string; change: FileChangeView; onClose: () => void }) {
  const t = useMessages();
  const c = useChangeMessages();
  const queries = useQueryClient();
  const [failure, isBusy, attempt] = useAttempt();
  const [isUndone, setIsUndone] = useState(change.is_undone);
  const [isPreviewed, setIsPreviewed] = useState(false);
  const { data, error } = useQuery({
    queryKey: ['change', change.change_id],
    queryFn: () => showDiff(session, change.change_id),
  });
  const undo = async () => {
    await undoChange(session, change.change_id);
    setIsUndone(true);
    await queries.invalidateQueries({ queryKey: ['changes', session] });
    await queries.invalidateQueries({ queryKey: ['workspace', session] });
  };
  if (isPreviewed) {
    return <FilePreview file={fileOfWorkspace(session, change)} onClose={() => setIsPreviewed(false)} />;
  }
  const name = displayName(change.path);
  return (
    <Dialog label={name} onClose={onClose} className="m-auto max-h-[88dvh] w-[min(60rem,94vw)] overflow-auto rounded-xl p-5">
      <header className="mb-3 flex items-center gap-2">
        <h2 dir="ltr" className="isolate-text min-w-0 flex-1 truncate font-semibold">{name}</h2>
        <ChangeNote change={{ ...change, is_undone: isUndone }} />
        <button type="button" className="bar-button" aria-label={t.close} title={t.close} onClick={onClose}>
          <X size={17} aria-hidden="true" />
        </button>
      </header>
      {failure !== '' && (
        <p role="alert" className="mb-2 text-bad">
          {failure}
        </p>
      )}
      {error !== null && <p role="alert" className="text-bad">{error.message || t.unreachable}</p>}
      {data === undefined && error === null && <p className="text-dim">{t.loading}</p>}
      {data !== undefined && data.diff !== '' && <Diff text={data.diff} />}
      {data !== undefined && data.note !== '' && <p className="mt-1 text-dim">{c.notes[data.note]}</p>}
      <p className="mt-3 flex flex-wrap gap-2">
        {!isUndone && (
          <button type="button" className="choice" disabled={isBusy} onClick={() => void attempt(undo)}>
            <RotateCcw size={15} aria-hidden="true" />
            {c.undo}
          </button>
        )}
        {change.kind !== 'deleted' && !isUndone && data?.note !== 'secret' && (
          <button type="button" className="choice" onClick={() => setIsPreviewed(true)}>
            {c.open}
          </button>
        )}
      </p>
    </Dialog>
  );
}
