import { Download } from 'lucide-react';
import type { Attachment } from '../../api/client';
import { formatSize } from '../../lib/format';
import { useMessages } from '../../i18n/catalog';

/** A link that downloads a stored file. */
export function FileLink({ file, wide = false }: { file: Attachment; wide?: boolean }) {
  const t = useMessages();
  return (
    <a
      href={`/api/attachments/${file.sha256}`}
      download={file.name}
      className={`flex items-center gap-2 rounded-lg px-2 py-1 hover:bg-hover ${wide ? '' : 'max-w-64 border border-line bg-bg'}`}
    >
      <span className="sr-only">{t.download}</span>
      <span className="font-mono text-[13px] text-dim" aria-hidden="true">
        ▤
      </span>
      <span className="min-w-0 flex-1 truncate">{file.name}</span>
      <span className="flex-none text-xs text-dim">{formatSize(file.size)}</span>
      <Download size={14} className="flex-none text-dim" aria-hidden="true" />
    </a>
  );
}
