import { Suspense, useEffect, useRef, useState } from 'react';
import type { StoredFile } from '../../api/files';
import { previewKind } from '../../lib/file_kind';
import { lazyComponent } from '../../lib/lazy';
import { useContent, useContentRef } from './content';
import { FileIcon } from './file_icon';

const HtmlFrame = lazyComponent(() => import('./html_frame').then((module) => module.HtmlFrame));

const MAX_THUMBNAIL_BYTES = 8_000_000;
const MAX_DOCUMENT_BYTES = 1_000_000;
/** A document cannot be recognised in a smaller picture. */
const MIN_DOCUMENT_ICON = 36;

/**
 * A small picture of a file, read when it is scrolled into view: of pictures, and of HTML documents
 * where there is room. An icon for all others.
 */
export function Thumbnail({ file, className, icon }: { file: StoredFile; className: string; icon: number }) {
  const box = useRef<HTMLSpanElement>(null);
  const [isSeen, setIsSeen] = useState(false);
  const [isBroken, setIsBroken] = useState(false);
  const kind = previewKind(file.name, file.mediaType);
  const isPicture = kind === 'image' && file.size <= MAX_THUMBNAIL_BYTES;
  const isDocument = kind === 'html' && icon >= MIN_DOCUMENT_ICON && file.size <= MAX_DOCUMENT_BYTES;
  const isRead = isPicture || isDocument;
  useEffect(() => {
    if (!isRead || box.current === null) return undefined;
    const observer = new IntersectionObserver((seen) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      setIsSeen(true);
      observer.disconnect();
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [isRead]);
  const { data } = useContent(file, Infinity, isRead && isSeen);
  const picture = useContentRef(data, file.mediaType);
  return (
    <span ref={box} className={`flex flex-none items-center justify-center overflow-hidden bg-side ${className}`}>
      {data !== undefined && isDocument ? (
        <DocumentPicture content={data} />
      ) : data !== undefined && !isBroken ? (
        <img ref={picture} alt="" className="size-full object-cover" onError={() => setIsBroken(true)} />
      ) : (
        <FileIcon name={file.name} mediaType={file.mediaType} size={icon} />
      )}
    </span>
  );
}

/** An HTML document, drawn four times as large as its place. */
function DocumentPicture({ content }: { content: Blob }) {
  const [html, setHtml] = useState<string>();
  useEffect(() => {
    let isShown = true;
    void content.text().then((read) => isShown && setHtml(read));
    return () => {
      isShown = false;
    };
  }, [content]);
  if (html === undefined) return null;
  return (
    <Suspense fallback={null}>
      <span data-testid="document-picture" className="pointer-events-none relative block size-full">
        <HtmlFrame title="" html={html} className="absolute top-0 left-0 h-[400%] w-[400%] origin-top-left scale-25" />
      </span>
    </Suspense>
  );
}
