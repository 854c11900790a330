import { RotateCcw, X } from 'lucide-react';
import { useFileMessages } from '../../i18n/files';
import { formatSize } from '../../lib/format';
import { removeFile, retryFile } from '../../state/upload_queue';
import { isPending, useDraftFiles, type Upload } from '../../state/uploads';
import { FileIcon } from './file_icon';

/** The files of a draft, and what is shown while further ones are dragged over the page. */
export function Uploads(props: {
  draft: string;
  isOver: boolean;
  held: boolean;
  onRelease: () => void;
}) {
  const f = useFileMessages();
  const files = useDraftFiles(props.draft);
  return (
    <>
      {props.isOver && (
        <div className="pointer-events-none fixed inset-3 z-20 flex items-center justify-center rounded-2xl border-2 border-dashed border-accent bg-bg/95 text-[17px] font-medium">
          {f.drop}
        </div>
      )}
      {props.held && (
        <p role="status" className="flex items-center gap-2 px-3.5 pt-2.5 text-[13px] text-dim">
          {f.held}
          <button type="button" onClick={props.onRelease} className="text-accent hover:underline">
            {f.release}
          </button>
        </p>
      )}
      {files.length > 0 && (
        <ul aria-label={f.attached} className="flex max-h-[30vh] flex-wrap gap-2 overflow-y-auto px-3 pt-3">
          {files.map((file) => (
            <UploadView key={file.id} draft={props.draft} file={file} />
          ))}
        </ul>
      )}
    </>
  );
}

function UploadView({ draft, file }: { draft: string; file: Upload }) {
  const f = useFileMessages();
  const percent = file.size === 0 ? 0 : Math.floor((file.sent / file.size) * 100);
  const state = {
    waiting: f.queued,
    sending: `${percent} %`,
    retrying: f.retrying,
    done: formatSize(file.size),
    failed: file.failure,
  }[file.status];
  const failed = file.status === 'failed';
  return (
    <li
      className={`relative flex max-w-72 items-center gap-2 overflow-hidden rounded-lg border px-2 py-1 ${failed ? 'border-bad' : 'border-line'}`}
    >
      <FileIcon name={file.name} mediaType={file.media_type} />
      <span className="min-w-0">
        <span className="isolate-text block truncate">{file.name}</span>
        <span className={`block text-xs tabular-nums ${failed ? 'text-bad' : 'truncate text-dim'}`}>{state}</span>
      </span>
      {failed && (
        <button type="button" aria-label={f.retry(file.name)} title={f.retry(file.name)} onClick={() => retryFile(draft, file.id)} className="bar-button h-6! w-6!">
          <RotateCcw size={14} aria-hidden="true" />
        </button>
      )}
      <button type="button" aria-label={f.remove(file.name)} title={f.remove(file.name)} onClick={() => removeFile(draft, file.id)} className="bar-button h-6! w-6!">
        <X size={14} aria-hidden="true" />
      </button>
      {isPending(file) && (
        <progress
          aria-label={f.progress(file.name)}
          max={file.size}
          value={file.sent}
          className="upload-progress absolute inset-x-0 bottom-0 h-0.5 w-full"
        />
      )}
    </li>
  );
}
