import type { Status } from '../../stream/events';

const GLYPHS: Record<Status, { glyph: string; tone: string }> = {
  queued: { glyph: '○', tone: 'text-dim' },
  running: { glyph: '●', tone: 'text-accent pulse' },
  waiting: { glyph: '?', tone: 'text-warn' },
  completed: { glyph: '✓', tone: 'text-ok' },
  failed: { glyph: '✕', tone: 'text-bad' },
  cancelled: { glyph: '■', tone: 'text-dim' },
};

const LIMIT = { glyph: '⚠', tone: 'text-warn' };

/** The icon of a task status; `label` is read by screen readers. `isLimit`: it ended at a limit and can go on. */
export function StatusIcon({ status, label, isLimit = false }: { status: Status; label?: string; isLimit?: boolean }) {
  const { glyph, tone } = isLimit ? LIMIT : GLYPHS[status];
  return (
    <span className={`glyph ${tone}`}>
      <span aria-hidden="true">{glyph}</span>
      {label !== undefined && <span className="sr-only">{label}</span>}
    </span>
  );
}
