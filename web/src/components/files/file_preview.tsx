import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Download, Star, X } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { changeArtifact, download, showArtifact, type ArtifactView, type StoredFile } from '../../api/files';
import { useMessages } from '../../i18n/catalog';
import { useFileMessages } from '../../i18n/files';
import { formatSize } from '../../lib/format';
import { useTitle } from '../../state/sessions';
import { useAttempt } from '../layout/use_attempt';
import { Dialog } from '../layout/dialog';
import { PreviewContent } from './preview_content';

/** A file in a dialog: its content, and what can be done with it. */
export function FilePreview({ file, onClose }: { file: StoredFile; onClose: () => void }) {
  const t = useMessages();
  const f = useFileMessages();
  const [failure, , attempt] = useAttempt();
  const queries = useQueryClient();
  const id = file.artifact;
  const { data: artifact } = useQuery({
    queryKey: ['artifact', id],
    queryFn: () => showArtifact(id ?? ''),
    enabled: id !== null,
  });
  const change = async (wanted: { favourite?: boolean; caption?: string }) => {
    queries.setQueryData(['artifact', id], await changeArtifact(id ?? '', wanted));
    await queries.invalidateQueries({ queryKey: ['artifacts'] });
  };
  return (
    <Dialog
      label={file.name}
      onClose={onClose}
      className="m-auto h-[min(46rem,88dvh)] w-[min(60rem,94vw)] overflow-hidden rounded-xl p-0 max-[719px]:mx-0 max-[719px]:mt-auto max-[719px]:mb-0 max-[719px]:h-[94dvh] max-[719px]:w-full max-[719px]:max-w-none max-[719px]:rounded-b-none"
    >
      <div className="flex h-full flex-col">
        <header className="flex flex-none items-center gap-1 border-b border-line py-2 pr-2 pl-5">
          <div className="min-w-0 flex-1">
            <h2 className="isolate-text truncate font-semibold">{file.name}</h2>
            <p className="truncate text-xs text-dim">
              {formatSize(file.size)}
              {artifact !== undefined && artifact.version > 1 && ` · ${f.version(artifact.version)}`}
            </p>
          </div>
          {artifact !== undefined && (
            <StarButton artifact={artifact} onToggle={() => void attempt(() => change({ favourite: !artifact.favourite }))} />
          )}
          <button type="button" className="bar-button" aria-label={f.download(file.name)} title={f.save} onClick={() => void attempt(() => download(file))}>
            <Download size={16} aria-hidden="true" />
          </button>
          <button type="button" className="bar-button" aria-label={t.close} title={t.close} onClick={onClose}>
            <X size={17} aria-hidden="true" />
          </button>
        </header>
        {failure !== '' && (
          <p role="alert" className="flex-none px-5 py-1.5 text-bad">
            {failure}
          </p>
        )}
        <div className="flex min-h-0 flex-1 overflow-auto bg-bg">
          <PreviewContent file={file} />
        </div>
        {artifact !== undefined && (
          <footer className="flex flex-none flex-wrap items-center gap-x-4 gap-y-1 border-t border-line px-5 py-2">
            <CaptionField key={artifact.caption} caption={artifact.caption} onSave={(caption) => void attempt(() => change({ caption }))} />
            <RunLink artifact={artifact} onClose={onClose} />
          </footer>
        )}
      </div>
    </Dialog>
  );
}

export function StarButton(props: {
  artifact: Pick<ArtifactView, 'favourite'>;
  onToggle: () => void;
  className?: string;
}) {
  const f = useFileMessages();
  const { favourite } = props.artifact;
  return (
    <button
      type="button"
      aria-pressed={favourite}
      aria-label={f.star}
      title={favourite ? f.unstar : f.star}
      onClick={props.onToggle}
      className={`bar-button ${props.className ?? ''}`}
    >
      <Star size={16} aria-hidden="true" className={favourite ? 'text-warn' : ''} fill={favourite ? 'currentColor' : 'none'} />
    </button>
  );
}

const MAX_CAPTION_CHARACTERS = 300;

function CaptionField({ caption, onSave }: { caption: string; onSave: (caption: string) => void }) {
  const f = useFileMessages();
  const [text, setText] = useState(caption);
  const save = () => {
    if (text.trim() !== caption) onSave(text.trim());
  };
  return (
    <input
      aria-label={f.caption}
      placeholder={f.addCaption}
      value={text}
      dir="auto"
      maxLength={MAX_CAPTION_CHARACTERS}
      onChange={(event) => setText(event.target.value)}
      onBlur={save}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && !event.nativeEvent.isComposing) save();
      }}
      className="-mx-2 min-w-40 flex-1 rounded-lg bg-transparent px-2 py-1 hover:bg-hover focus:bg-hover"
    />
  );
}

/** A link to the run that made the file, named like its session. */
function RunLink({ artifact, onClose }: { artifact: ArtifactView; onClose: () => void }) {
  const f = useFileMessages();
  const { session_id: session, run_id: run } = artifact;
  const title = useTitle(session);
  return (
    <span className="flex min-w-0 items-center gap-1 text-[13px] text-dim">
      <span className="flex-none">{f.fromSession}</span>
      <Link href={`/sessions/${session}#${run}`} onClick={onClose} title={f.session} className="isolate-text max-w-72 truncate text-accent hover:underline">
        {title || f.session}
      </Link>
    </span>
  );
}
