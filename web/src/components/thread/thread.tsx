import { ArrowDown } from 'lucide-react';
import { Fragment, Suspense, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { VirtualizerHandle } from 'virtua';
import { useLocationProperty } from 'wouter/use-browser-location';
import { loadEarlier, useSessionStore } from '../../state/session_store';
import { keyOf, type Line, type LiveNode, type State, type SubtaskLine } from '../../state/session_state';
import { isTyping } from '../../lib/keyboard';
import { useMessages } from '../../i18n/catalog';
import { lazyComponent } from '../../lib/lazy';
import { LineView, LiveView } from './line_view';
import { RowBoundary } from './row';
import { WorkingRow, type Activity } from './working_row';

const EarlierMessages = lazyComponent(() =>
  import('./earlier_messages').then((module) => module.EarlierMessages),
);
const EarlierEvents = lazyComponent(() =>
  import('./earlier_messages').then((module) => module.EarlierEvents),
);
const WaitingMessages = lazyComponent(() =>
  import('./waiting_messages').then((module) => module.WaitingMessages),
);
const Lanes = lazyComponent(() => import('../tasks/lanes').then((module) => module.Lanes));
const VirtualRows = lazyComponent(() => import('./virtual_rows').then((module) => module.VirtualRows));

/** Above this number of rows only the visible ones are rendered. */
const VIRTUALIZE_FROM = 200;
/** The rows of an earlier conversation are the first one of the list. */
const ROWS_BEFORE = 1;
/** Scrolling this soon after an input is that of a person. */
const TOUCHED_MS = 1_000;
const INPUTS = ['wheel', 'touchmove', 'pointerdown', 'keydown'] as const;
/** The view follows the end while it is closer than this. */
const NEAR_END_PX = 80;
/** Earlier events are loaded while the view is closer to the start than this. */
const NEAR_START_PX = 800;

type Entry =
  | { key: string; run: string; line: Line }
  | { key: string; run: string; lanes: SubtaskLine[] }
  | { key: string; run: string; node: LiveNode }
  | { key: string; run: string; activity: Activity };

/** Return the lines of each run, the replies that are being streamed, and what active runs do. */
function entriesOf(state: State): Entry[] {
  const entries: Entry[] = [];
  for (const line of state.thread.lines) {
    const before = entries.at(-1);
    const { key, run } = line;
    if (line.kind !== 'subtask') entries.push({ key, run, line });
    else if (before !== undefined && 'lanes' in before && before.run === run) before.lanes.push(line);
    else entries.push({ key, run, lanes: [line] });
  }
  const nodes = Object.values(state.live);
  const running = Object.values(state.thread.open).flatMap((at) => {
    const line = state.thread.lines[at];
    return line?.kind === 'tool' && line.status === 'running' ? [line] : [];
  });
  for (const run of state.runs) {
    const awaitsTasks = run.status === 'waiting' && run.reason === 'await_tasks';
    if (run.status !== 'running' && run.status !== 'queued' && !awaitsTasks) continue;
    const own = nodes.filter((node) => node.run === run.run);
    const replies = own.filter((node) => node.node.endsWith(':say') && node.retry === undefined);
    const calls = running.filter((line) => line.run === run.run);
    const added: Entry[] = replies.map((node) => ({ key: keyOf(run.run, node.node), run: run.run, node }));
    added.push({ key: keyOf(run.run, 'working'), run: run.run, activity: { run, nodes: own, calls } });
    const last = entries.findLastIndex((entry) => entry.run === run.run);
    entries.splice(last < 0 ? entries.length : last + 1, 0, ...added);
  }
  return entries;
}

/** Return the entry that an address names by a run or a task, "" for none. */
function linkedKey(state: State, entries: readonly Entry[], place: string): string {
  if (place === '') return '';
  const lane = entries.find((one) => 'lanes' in one && one.lanes.some((each) => each.task === place));
  const run = state.runs.find((one) => one.task === place)?.run ?? place;
  return lane?.key ?? keyOf(run, 'result');
}

export function Thread() {
  const t = useMessages();
  const session = useSessionStore((store) => store.session);
  const state = useSessionStore((store) => store.state);
  const earlier = useSessionStore((store) => store.earlier);
  const isLong = useSessionStore((store) => store.isLong);
  const grewAtStart = useSessionStore((store) => store.grewAtStart);
  const entries = useMemo(() => entriesOf(state), [state]);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [selected, setSelected] = useState<string | null>(null);
  const [isAwayFromEnd, setIsAwayFromEnd] = useState(false);
  const view = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const follows = useRef(true);
  const touched = useRef(-Infinity);
  const hasToggled = useRef(false);
  const shown = useRef('');
  const isVirtual = isLong || entries.length > VIRTUALIZE_FROM;
  const place = useLocationProperty(() => location.hash.slice(1));
  const linked = useMemo(() => linkedKey(state, entries, place), [state, entries, place]);

  // a reply that was seen while it was streamed stays expanded when it is complete
  const streamed = entries.flatMap((one) => ('node' in one ? [one.key] : []));
  if (!streamed.every((key) => open.has(key))) setOpen(new Set([...open, ...streamed]));

  const measure = useCallback((mayFollow = false) => {
    const box = view.current;
    if (box === null) return;
    const isNearEnd = box.scrollHeight - box.scrollTop - box.clientHeight <= NEAR_END_PX;
    follows.current = isNearEnd || (mayFollow && follows.current);
    setIsAwayFromEnd(!follows.current);
    if (!follows.current && box.scrollTop < NEAR_START_PX) void loadEarlier();
  }, []);

  // rows that are measured or replaced before this event move the end away: only people leave it
  const scrolled = useCallback(() => {
    measure(performance.now() - touched.current > TOUCHED_MS);
  }, [measure]);
  useEffect(() => {
    const box = view.current;
    const touch = () => {
      touched.current = performance.now();
    };
    for (const input of INPUTS) box?.addEventListener(input, touch, { passive: true });
    return () => {
      for (const input of INPUTS) box?.removeEventListener(input, touch);
    };
  }, []);

  const scrollToEnd = useCallback(() => {
    const box = view.current;
    if (box !== null) box.scrollTop = box.scrollHeight;
  }, []);

  // the end moves as well when rows are measured, and when pictures are loaded; a row that somebody
  // expands stays where it is
  useEffect(() => {
    if (content.current === null) return;
    const resized = new ResizeObserver(() => {
      if (follows.current && !hasToggled.current) scrollToEnd();
    });
    resized.observe(content.current);
    return () => resized.disconnect();
  }, [scrollToEnd]);

  /** Show the end of the run that the address names, once; otherwise follow the end. */
  const follow = useCallback(() => {
    const at = entries.findIndex((one) => one.key === linked);
    if (at >= 0 && linked !== shown.current && (!isVirtual || list.current !== null)) {
      shown.current = linked;
      follows.current = false;
      // oxlint-disable-next-line react/set-state-in-effect -- once for each address
      setSelected(linked);
      list.current?.scrollToIndex(at + ROWS_BEFORE, { align: 'center' });
    }
    if (follows.current) scrollToEnd();
  }, [entries, isVirtual, linked, scrollToEnd]);

  useLayoutEffect(follow, [follow]);

  useEffect(() => {
    if (place !== '' && earlier !== null && !entries.some((one) => one.key === linked)) void loadEarlier();
  }, [place, linked, earlier, entries]);

  const toggle = useCallback(
    (key: string) => {
      hasToggled.current = true;
      setOpen((now) => {
        const next = new Set(now);
        if (!next.delete(key)) next.add(key);
        return next;
      });
      // an expanded row may move the end out of reach, which ends following
      requestAnimationFrame(() => measure());
    },
    [measure],
  );

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      if (event.key === 'o' && selected !== null) {
        toggle(selected);
        return;
      }
      const step = { j: 1, k: -1 }[event.key];
      if (step === undefined || entries.length === 0) return;
      const at = entries.findIndex((store) => store.key === selected);
      const first = step > 0 ? 0 : entries.length - 1;
      const next = at < 0 ? first : Math.min(entries.length - 1, Math.max(0, at + step));
      setSelected(entries[next]?.key ?? null);
      follows.current = false;
      list.current?.scrollToIndex(next + ROWS_BEFORE, { align: 'nearest' });
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [selected, entries, toggle]);

  const rows = entries.map((one) => {
    const isSelected = one.key === selected;
    return (
      <RowBoundary key={one.key} content={'line' in one ? one.line : 'node' in one ? one.node : one}>
        {'lanes' in one ? (
          <Suspense fallback={null}>
            <Lanes lanes={one.lanes} open={open} here={isSelected} onToggle={toggle} />
          </Suspense>
        ) : 'line' in one ? (
          <LineView
            line={one.line}
            live={one.line.kind === 'tool' ? state.live[one.key] : undefined}
            open={open.has(one.key)}
            here={isSelected}
            onToggle={toggle}
          />
        ) : 'node' in one ? (
          <LiveView node={one.node} here={isSelected} />
        ) : (
          <WorkingRow id={one.key} activity={one.activity} open={open.has(one.key)} here={isSelected} onToggle={toggle} />
        )}
      </RowBoundary>
    );
  });
  const before = session !== null && (
    <Suspense fallback={null}>{earlier === null ? <EarlierMessages session={session} /> : <EarlierEvents />}</Suspense>
  );
  const waiting = session !== null && (
    <Suspense fallback={null}>
      <WaitingMessages session={session} />
    </Suspense>
  );
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={view}
        onScroll={scrolled}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={t.conversation}
        data-testid="thread"
        className="h-full overflow-y-auto overscroll-contain [overflow-anchor:none]"
      >
        <div ref={content} className="mx-auto max-w-[808px] px-6 pt-4 pb-8">
          {isVirtual ? (
            <Suspense fallback={<p className="text-center text-dim">{t.loading}</p>}>
              <VirtualRows list={list} view={view} shift={grewAtStart} onMount={follow}>
                {[<Fragment key="earlier">{before}</Fragment>, ...rows, <Fragment key="waiting">{waiting}</Fragment>]}
              </VirtualRows>
            </Suspense>
          ) : (
            <>
              {before}
              {rows}
              {waiting}
            </>
          )}
        </div>
      </div>
      {isAwayFromEnd && (
        <button
          type="button"
          onClick={() => {
            follows.current = true;
            hasToggled.current = false;
            scrollToEnd();
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
