import { ArrowDown } from 'lucide-react';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { Virtualizer, type VirtualizerHandle } from 'virtua';
import { useSessionStore } from '../../state/session_store';
import { keyOf, type Line, type LiveNode, type State } from '../../state/session_state';
import { isTyping } from '../../lib/keyboard';
import { useMessages } from '../../i18n/catalog';
import { LineView, LiveView } from './line_view';

/** Rows beyond this are only there while they are seen. */
const VIRTUALIZE_FROM = 200;
/** The end is followed by whoever stands this near to it, in pixels. */
const NEAR_END_PX = 80;

type Entry = { key: string; line: Line } | { key: string; node: LiveNode };

/** Lines, then what is being said right now: words that have no line yet stand at the end. */
function entriesOf(state: State): Entry[] {
  const entries: Entry[] = state.thread.lines.map((line) => ({ key: line.key, line }));
  const nodes = Object.values(state.live);
  for (const node of nodes) {
    const key = keyOf(node.run, node.node);
    const shown = node.node.endsWith(':say') || node.node.endsWith(':think');
    const says = state.live[keyOf(node.run, node.node.replace(/:think$/, ':say'))];
    const overtaken = node.reasoning && says !== undefined && says.text !== '';
    if (shown && !overtaken) entries.push({ key, node });
  }
  return entries;
}

export function Thread() {
  const t = useMessages();
  const state = useSessionStore((one) => one.state);
  const entries = useMemo(() => entriesOf(state), [state]);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [cursor, setCursor] = useState<string | null>(null);
  const [away, setAway] = useState(false);
  const view = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const follows = useRef(true);
  const virtual = entries.length > VIRTUALIZE_FROM;

  // words that were seen coming stay as they are when their line is finished
  const said = entries.flatMap((one) => ('node' in one && !one.node.reasoning ? [one.key] : []));
  if (!said.every((key) => open.has(key))) setOpen(new Set([...open, ...said]));

  const measure = useCallback(() => {
    const box = view.current;
    if (box === null) return;
    follows.current = box.scrollHeight - box.scrollTop - box.clientHeight <= NEAR_END_PX;
    setAway(!follows.current);
  }, []);

  const toEnd = useCallback(() => {
    const box = view.current;
    if (box === null) return;
    if (list.current !== null) list.current.scrollToIndex(entries.length - 1, { align: 'end' });
    else box.scrollTop = box.scrollHeight;
  }, [entries.length]);

  useLayoutEffect(() => {
    if (follows.current) toEnd();
    // oxlint-disable-next-line react/exhaustive-effect-dependencies -- whatever is new moves the end
  }, [entries, toEnd]);

  const toggle = useCallback(
    (key: string) => {
      setOpen((now) => {
        const next = new Set(now);
        if (!next.delete(key)) next.add(key);
        return next;
      });
      // what was opened may push the end away: then it is not followed any more
      requestAnimationFrame(measure);
    },
    [measure],
  );

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      if (event.key === 'o' && cursor !== null) {
        toggle(cursor);
        return;
      }
      const step = { j: 1, k: -1 }[event.key];
      if (step === undefined || entries.length === 0) return;
      const at = entries.findIndex((one) => one.key === cursor);
      const first = step > 0 ? 0 : entries.length - 1;
      const next = at < 0 ? first : Math.min(entries.length - 1, Math.max(0, at + step));
      setCursor(entries[next]?.key ?? null);
      follows.current = false;
      list.current?.scrollToIndex(next, { align: 'nearest' });
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [cursor, entries, toggle]);

  const rows = entries.map((one) => {
    const here = one.key === cursor;
    return 'line' in one ? (
      <LineView
        key={one.key}
        line={one.line}
        live={one.line.kind === 'tool' ? state.live[one.key] : undefined}
        open={open.has(one.key)}
        here={here}
        onToggle={toggle}
      />
    ) : (
      <LiveView key={one.key} node={one.node} open={open.has(one.key)} here={here} onToggle={toggle} />
    );
  });
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={view}
        onScroll={measure}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={t.conversation}
        data-testid="thread"
        className="h-full overflow-y-auto overscroll-contain [overflow-anchor:none]"
      >
        <div className="mx-auto max-w-[808px] px-6 pt-4 pb-8">
          {virtual ? (
            <Virtualizer ref={list} scrollRef={view} startMargin={16}>
              {rows}
            </Virtualizer>
          ) : (
            rows
          )}
        </div>
      </div>
      {away && (
        <button
          type="button"
          onClick={() => {
            follows.current = true;
            toEnd();
          }}
          className="absolute bottom-3 left-1/2 flex -translate-x-1/2 items-center gap-1.5 rounded-full border border-line bg-raised px-3 py-1 text-[13px] shadow"
        >
          <ArrowDown size={14} aria-hidden="true" />
          {t.toEnd}
        </button>
      )}
    </div>
  );
}
