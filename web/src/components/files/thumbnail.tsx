import { useEffect, useRef, useState } from 'react';
import type { StoredFile } from '../../api/files';
import { previewKind } from '../../lib/file_kind';
import { useContent, useContentRef } from './content';
import { FileIcon } from './file_icon';

const MAX_THUMBNAIL_BYTES = 8_000_000;

/** A small picture of a file, read when it is scrolled into view; an icon for all but pictures. */
export function Thumbnail({ file, className, icon }: { file: StoredFile; className: string; icon: number }) {
  const box = useRef<HTMLSpanElement>(null);
  const [isSeen, setIsSeen] = useState(false);
  const [isBroken, setIsBroken] = useState(false);
  const isPicture = previewKind(file.name, file.mediaType) === 'image' && file.size <= MAX_THUMBNAIL_BYTES;
  useEffect(() => {
    if (!isPicture || box.current === null) return undefined;
    const observer = new IntersectionObserver((seen) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      setIsSeen(true);
      observer.disconnect();
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [isPicture]);
  const { data } = useContent(file, Infinity, isPicture && isSeen);
  const picture = useContentRef(data, file.mediaType);
  return (
    <span ref={box} className={`flex flex-none items-center justify-center overflow-hidden bg-side ${className}`}>
      {data !== undefined && !isBroken ? (
        <img ref={picture} alt="" className="size-full object-cover" onError={() => setIsBroken(true)} />
      ) : (
        <FileIcon name={file.name} mediaType={file.mediaType} size={icon} />
      )}
    </span>
  );
}
