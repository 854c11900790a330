import { Download } from 'lucide-react';
import { useState } from 'react';
import { download, fileOfArtifact, fileOfAttachment, type StoredFile } from '../../api/files';
import { useFileMessages } from '../../i18n/files';
import { formatSize } from '../../lib/format';
import { useSessionStore } from '../../state/session_store';
import { newestVersions } from '../../state/versions';
import { useAttempt } from '../layout/use_attempt';
import type { Attachment } from '../../stream/events';
import { FilePreview } from './file_preview';
import { Thumbnail } from './thumbnail';

/** More files than these are shown on demand. */
const MAX_CHIPS = 8;

/** Files of a message or a call. */
export function FileChips({ files }: { files: readonly Attachment[] }) {
  return <Chips files={files.map(fileOfAttachment)} />;
}

/** The files that a run made, below its answer. */
export function RunFiles({ run }: { run: string }) {
  const artifacts = useSessionStore((store) => store.state.artifacts);
  const made = newestVersions(artifacts.filter((one) => one.run === run));
  if (made.length === 0) return null;
  return (
    <div data-testid="run-files" className="mb-1 ml-[1.625rem]">
      <Chips files={made.map(({ newest }) => fileOfArtifact(newest))} />
    </div>
  );
}

function Chips({ files }: { files: readonly StoredFile[] }) {
  const f = useFileMessages();
  const [shown, setShown] = useState<StoredFile | null>(null);
  const [failure, , attempt] = useAttempt();
  const [wantsAll, setWantsAll] = useState(false);
  const isExpanded = wantsAll || files.length <= MAX_CHIPS + 1;
  return (
    <>
      <ul className="flex flex-wrap gap-2">
        {(isExpanded ? files : files.slice(0, MAX_CHIPS)).map((file) => (
          <li key={file.key} className="flex max-w-72 items-center rounded-lg border border-line bg-bg">
            <button
              type="button"
              onClick={() => setShown(file)}
              className="flex min-w-0 items-center gap-2 rounded-lg py-1 pr-2 pl-1 text-left hover:bg-hover"
            >
              <Thumbnail file={file} icon={16} className="size-9 rounded-md" />
              <span className="min-w-0">
                <span className="sr-only">{f.open} </span>
                <span className="isolate-text block truncate">{file.name}</span>
                <span className="block text-xs text-dim">{formatSize(file.size)}</span>
              </span>
            </button>
            <button type="button" aria-label={f.download(file.name)} title={f.save} onClick={() => void attempt(() => download(file))} className="bar-button">
              <Download size={14} aria-hidden="true" />
            </button>
          </li>
        ))}
        {!isExpanded && (
          <li className="flex">
            <button type="button" onClick={() => setWantsAll(true)} className="rounded-lg px-3 text-[13px] text-accent hover:bg-hover">
              {f.further(files.length - MAX_CHIPS)}
            </button>
          </li>
        )}
      </ul>
      {failure !== '' && (
        <p role="alert" className="text-bad">
          {failure}
        </p>
      )}
      {shown !== null && <FilePreview file={shown} onClose={() => setShown(null)} />}
    </>
  );
}
