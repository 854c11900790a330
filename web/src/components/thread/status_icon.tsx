import type { Status } from '../../stream/events';

const GLYPHS: Record<Status, { glyph: string; tone: string }> = {
  queued: { glyph: '○', tone: 'text-dim' },
  running: { glyph: '●', tone: 'text-accent pulse' },
  waiting: { glyph: '?', tone: 'text-warn' },
  completed: { glyph: '✓', tone: 'text-ok' },
  failed: { glyph: '✕', tone: 'text-bad' },
  cancelled: { glyph: '■', tone: 'text-dim' },
};

/** The icon of a task status; `label` is read by screen readers. */
export function StatusIcon({ status, label }: { status: Status; label?: string }) {
  const { glyph, tone } = GLYPHS[status];
  return (
    <span className={`glyph ${tone}`}>
      <span aria-hidden="true">{glyph}</span>
      {label !== undefined && <span className="sr-only">{label}</span>}
    </span>
  );
}
