/** The rows of a thread. */
import { ChevronRight } from 'lucide-react';
import { Component, Suspense, useEffect, useRef, type ReactNode } from 'react';

export interface RowProps {
  open: boolean;
  here: boolean;
  onToggle: (key: string) => void;
}

/** A row that expands below itself, without moving. */
export function ExpandableRow(
  props: RowProps & {
    id: string;
    glyph: string;
    tone: string;
    title: ReactNode;
    hint?: ReactNode;
    end?: ReactNode;
    quiet?: boolean;
    children: ReactNode;
  },
) {
  const button = useRef<HTMLButtonElement>(null);
  useFocus(button, props.here);
  return (
    <div className="group">
      <button
        ref={button}
        type="button"
        aria-expanded={props.open}
        onClick={() => props.onToggle(props.id)}
        className="-mx-2 flex h-7 w-[calc(100%+1rem)] items-center gap-1.5 rounded-lg px-2 text-left hover:bg-hover"
      >
        <span className={`glyph ${props.tone}`} aria-hidden="true">
          {props.glyph}
        </span>
        <span className={`min-w-0 truncate ${props.quiet ? 'text-dim' : ''}`}>{props.title}</span>
        <span className="min-w-0 flex-1 truncate text-dim">{props.hint}</span>
        <span className="flex-none text-[13px] text-dim tabular-nums">{props.end}</span>
        <ChevronRight
          size={14}
          aria-hidden="true"
          className={`flex-none text-dim ${props.open ? 'rotate-90' : ''}`}
        />
      </button>
      {props.open && (
        <div className="mb-2 ml-[1.625rem] pt-1">
          <Suspense>{props.children}</Suspense>
        </div>
      )}
    </div>
  );
}

/** A row that is always shown in full. */
export function StaticRow(props: { glyph: string; tone: string; here: boolean; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useFocus(box, props.here);
  return (
    <div ref={box} tabIndex={-1} className="flex gap-1.5 rounded-lg py-1.5">
      <span className={`glyph pt-[3px] ${props.tone}`} aria-hidden="true">
        {props.glyph}
      </span>
      <div className="min-w-0 flex-1">{props.children}</div>
    </div>
  );
}

export function useFocus(element: { current: HTMLElement | null }, here: boolean): void {
  useEffect(() => {
    if (here) element.current?.focus({ preventScroll: false });
  }, [element, here]);
}

export function Text({ children, tone = 'text-dim' }: { children: string; tone?: string }) {
  return <p className={`max-h-80 overflow-auto break-words whitespace-pre-wrap ${tone}`}>{children}</p>;
}

export function NoteRow({ glyph, here, children }: { glyph: string; here: boolean; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useFocus(box, here);
  return (
    <div ref={box} tabIndex={-1} className="flex min-h-8 flex-wrap items-center gap-1.5 rounded-lg py-1 text-[13px] text-dim tabular-nums">
      <span className="glyph" aria-hidden="true">
        {glyph}
      </span>
      {children}
    </div>
  );
}

/** A sentence about a run, which may take several lines. */
export function SentenceRow({ here, children }: { here: boolean; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useFocus(box, here);
  return (
    <div ref={box} tabIndex={-1} className="flex items-baseline gap-1.5 rounded-lg py-1 text-[13px] text-dim">
      <span className="glyph" aria-hidden="true">
        ·
      </span>
      <span className="min-w-0 flex-1 break-words">{children}</span>
    </div>
  );
}

/** A row that cannot be rendered is shown as plain text; the rest of the page stays. */
export class RowBoundary extends Component<{ content: object; children: ReactNode }> {
  static getDerivedStateFromError = () => ({ failed: true });

  override state = { failed: false };

  override render(): ReactNode {
    const { text, answer } = this.props.content as { text?: unknown; answer?: unknown };
    const plain = text ?? answer ?? this.props.content;
    if (!this.state.failed) return this.props.children;
    return <Text>{typeof plain === 'string' ? plain : JSON.stringify(plain)}</Text>;
  }
}
