import { useEffect, useRef, useState, type ReactNode } from 'react';
import { useDiagramMessages } from '../../i18n/diagram';
import { drawDiagram } from '../../lib/diagram';
import { usePreferences } from '../../state/preferences';

/** A Mermaid diagram, or its source (`children`) if that is wanted or nothing can be drawn. */
export function Diagram(props: { code: string; children: ReactNode }) {
  const theme = usePreferences((preferences) => preferences.theme);
  return <Drawn key={theme} {...props} />;
}

/** A diagram in the colours that the page has when it is first shown. */
function Drawn({ code, children }: { code: string; children: ReactNode }) {
  const t = useDiagramMessages();
  const box = useRef<HTMLDivElement>(null);
  const [picture, setPicture] = useState<string | null | undefined>();
  const [isSource, setSource] = useState(false);
  useEffect(() => {
    let isCurrent = true;
    let made: string | null = null;
    const draw = async () => {
      const fg = getComputedStyle(box.current ?? document.body).color;
      made = await drawDiagram(code, { fg, bg: getComputedStyle(document.body).backgroundColor });
      if (isCurrent) setPicture(made);
      else if (made !== null) URL.revokeObjectURL(made);
    };
    draw().catch(() => setPicture(null));
    return () => {
      isCurrent = false;
      if (made !== null) URL.revokeObjectURL(made);
    };
  }, [code]);
  return (
    <div ref={box}>
      {picture === undefined && <p role="status" className="px-3.5 py-2 font-sans text-[13px] text-dim">{t.drawing}</p>}
      {picture === null && <p className="px-3.5 pb-1 font-sans text-[13px] text-dim">{t.failed}</p>}
      {typeof picture === 'string' && (
        <>
          {!isSource && (
            // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls
            <div role="region" aria-label={t.diagram} tabIndex={0} className="overflow-x-auto px-3.5">
              <img src={picture} alt={code} className="mx-auto max-w-none" />
            </div>
          )}
          <button type="button" className="px-3.5 pb-2 font-sans text-xs text-accent hover:underline" onClick={() => setSource(!isSource)}>
            {isSource ? t.showDiagram : t.showSource}
          </button>
        </>
      )}
      {(typeof picture !== 'string' || isSource) && children}
    </div>
  );
}
