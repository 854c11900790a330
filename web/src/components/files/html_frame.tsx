import { useMemo, useRef } from 'react';
import { address } from '../../api/address';
import { htmlDocument } from '../../lib/sandbox_document';

/**
 * A document in a frame of another origin without scripts. That frame is in one from the server, whose
 * policy allows inline styles: the policy of the page, which does not, would hold for its own frames.
 * One without a title is a picture that nobody can use.
 */
export function HtmlFrame({ title, html, className }: { title: string; html: string; className: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const shown = useMemo(() => htmlDocument(html), [html]);
  const isPicture = title === '';
  const show = () => frame.current?.contentWindow?.postMessage(shown, '*');
  return (
    <iframe ref={frame} title={title} sandbox="allow-scripts" src={address('/preview')} onLoad={show} tabIndex={isPicture ? -1 : 0} aria-hidden={isPicture} className={`bg-white ${className}`} />
  );
}
