import { Download, FolderDown, History } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { download, downloadAll, fileOfArtifact, fileOfAttachment, type StoredFile } from '../../api/files';
import { useFileMessages } from '../../i18n/files';
import { formatSize, formatTime } from '../../lib/format';
import { usePreferences } from '../../state/preferences';
import { useSessionStore } from '../../state/session_store';
import { useTitle } from '../../state/sessions';
import { newestVersions, type Versions } from '../../state/versions';
import type { ArtifactFile, State } from '../../state/session_state';
import { useAttempt } from '../layout/use_attempt';
import { ChangedFiles } from './changed_files';
import { FilePreview } from './file_preview';
import { Thumbnail } from './thumbnail';
import { WorkspaceTree } from './workspace_tree';

/** The files of the shown session: those that runs made, and those that people sent. */
export function SessionFiles({ state }: { state: State }) {
  const f = useFileMessages();
  const session = useSessionStore((store) => store.session);
  const title = useTitle(session);
  const [shown, setShown] = useState<StoredFile | null>(null);
  const [failure, , attempt] = useAttempt();
  const rowOf = (file: StoredFile, more: { note?: string; end?: ReactNode } = {}) => (
    <FileRow key={file.key} file={file} {...more} onOpen={() => setShown(file)} onSave={() => void attempt(() => download(file))} />
  );
  const made = newestVersions(state.artifacts);
  const sent = state.files.filter((file) => file.sent);
  const outputs = state.files.filter((file) => !file.sent);
  return (
    <>
      {made.length + state.files.length + state.changed.length === 0 && <p className="mb-4 text-dim">{f.none}</p>}
      {failure !== '' && (
        <p role="alert" className="mb-2 text-bad">
          {failure}
        </p>
      )}
      <Group title={f.made} shown={made.length > 0}>
        {made.map((versions) => (
          <VersionedRow key={versions.newest.name} versions={versions} rowOf={rowOf} />
        ))}
      </Group>
      {state.omitted > 0 && <p className="-mt-3 mb-5 text-[13px] text-warn">{f.omitted(state.omitted)}</p>}
      {made.length > 1 && session !== null && (
        <button type="button" onClick={() => void attempt(() => downloadAll(session, title))} className="choice -mt-2 mb-6 w-full justify-center">
          <FolderDown size={15} aria-hidden="true" />
          {f.all}
        </button>
      )}
      {session !== null && state.changes > 0 && <ChangedFiles session={session} revision={state.changes} />}
      <Group title={f.sent} shown={sent.length > 0}>
        {sent.map((file) => rowOf(fileOfAttachment(file)))}
      </Group>
      <Group title={f.outputs} shown={outputs.length > 0}>
        {outputs.map((file) => rowOf(fileOfAttachment(file)))}
      </Group>
      {session !== null && state.runs.length > 0 && <WorkspaceTree session={session} revision={state.changes} />}
      {shown !== null && <FilePreview file={shown} onClose={() => setShown(null)} />}
    </>
  );
}

function Group({ title, shown, children }: { title: string; shown: boolean; children: ReactNode }) {
  if (!shown) return null;
  return (
    <section className="mb-6">
      <h2 className="mb-1.5 text-xs text-dim">{title}</h2>
      <ul className="-mx-2">{children}</ul>
    </section>
  );
}

function VersionedRow(props: {
  versions: Versions<ArtifactFile>;
  rowOf: (file: StoredFile, more: { note?: string; end?: ReactNode }) => ReactNode;
}) {
  const { newest, earlier } = props.versions;
  const f = useFileMessages();
  const language = usePreferences((preferences) => preferences.language);
  const [open, setOpen] = useState(false);
  const noteOf = (one: ArtifactFile) =>
    [formatTime(one.time, language), one.version > 1 || open ? f.version(one.version) : ''].filter((text) => text !== '').join(' · ');
  const toggle = (
    <button
      type="button"
      aria-expanded={open}
      aria-label={f.versions(earlier.length)}
      title={f.versions(earlier.length)}
      onClick={() => setOpen(!open)}
      className={`bar-button ${open ? 'text-accent!' : ''}`}
    >
      <History size={14} aria-hidden="true" />
    </button>
  );
  return (
    <>
      {props.rowOf(fileOfArtifact(newest), { note: noteOf(newest), end: earlier.length > 0 && toggle })}
      {open && earlier.map((one) => props.rowOf(fileOfArtifact(one), { note: noteOf(one) }))}
    </>
  );
}

function FileRow(props: { file: StoredFile; note?: string; end?: ReactNode; onOpen: () => void; onSave: () => void }) {
  const { file, note = '' } = props;
  const f = useFileMessages();
  return (
    <li className="flex items-center rounded-lg hover:bg-hover">
      <button
        type="button"
        onClick={props.onOpen}
        className="flex min-w-0 flex-1 items-center gap-2.5 rounded-lg px-2 py-1.5 text-left"
      >
        <Thumbnail file={file} icon={18} className="size-9 rounded-md border border-line" />
        <span className="min-w-0">
          <span className="sr-only">{f.open} </span>
          <span className="isolate-text block truncate">{file.name}</span>
          <span className="block truncate text-xs text-dim tabular-nums">
            {formatSize(file.size)}
            {note !== '' && ` · ${note}`}
          </span>
        </span>
      </button>
      {props.end}
      <button type="button" aria-label={f.download(file.name)} title={f.save} onClick={props.onSave} className="bar-button">
        <Download size={15} aria-hidden="true" />
      </button>
    </li>
  );
}
