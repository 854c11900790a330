import { Download } from 'lucide-react';
import { useState } from 'react';
import type { Attachment } from '../../api/client';
import { formatSize } from '../../lib/format';
import { useMessages } from '../../i18n/catalog';

/** A button that downloads a stored file: a link would not send the login key. */
export function FileDownload({ file, wide = false }: { file: Attachment; wide?: boolean }) {
  const t = useMessages();
  const [failure, setFailure] = useState('');
  const save = async () => {
    setFailure('');
    try {
      const { download } = await import('../../api/files');
      await download(file);
    } catch (error) {
      setFailure((error as Error).message || t.unreachable);
    }
  };
  return (
    <>
      <button
        type="button"
        onClick={save}
        className={`flex items-center gap-2 rounded-lg px-2 py-1 text-left hover:bg-hover ${wide ? 'w-full' : 'max-w-64 border border-line bg-bg'}`}
      >
        <span className="sr-only">{t.download}</span>
        <span className="font-mono text-[13px] text-dim" aria-hidden="true">
          ▤
        </span>
        <span className="min-w-0 flex-1 truncate">{file.name}</span>
        <span className="flex-none text-xs text-dim">{formatSize(file.size)}</span>
        <Download size={14} className="flex-none text-dim" aria-hidden="true" />
      </button>
      {failure !== '' && (
        <p role="alert" className="text-bad">
          {failure}
        </p>
      )}
    </>
  );
}
