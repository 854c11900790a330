import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { api } from '../../api/client';
import type { MessageView } from '../../api/types.gen';
import { useMessages } from '../../i18n/catalog';
import { useRunActionMessages } from '../../i18n/run_actions';
import { loadEarlier, useSessionStore } from '../../state/session_store';
import { MarkdownView } from './markdown_view';

/** The browser lays out a row only near the part that is seen, so that a long conversation stays fast. */
const OUT_OF_VIEW = '[content-visibility:auto] [contain-intrinsic-size:auto_6rem]';

/** The start of the events that are loaded; scrolling up to it loads more. */
export function EarlierEvents() {
  const a = useRunActionMessages();
  return (
    <button type="button" className="mb-2 text-[13px] text-accent hover:underline" onClick={() => void loadEarlier()}>
      {a.showEarlier}
    </button>
  );
}

/** The conversation of the session that this one was branched from, up to the branch. */
export function EarlierMessages({ session }: { session: string }) {
  const a = useRunActionMessages();
  const t = useMessages();
  const { data: view } = useQuery({ queryKey: ['session', session], queryFn: () => api.session(session) });
  const origin = view?.forked_from ?? '';
  const pages = useInfiniteQuery({
    queryKey: ['earlier', session],
    queryFn: ({ pageParam }) => api.messages(session, pageParam),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
    enabled: origin !== '',
    staleTime: Infinity,
  });
  const own = useSessionStore((store) => store.state.runs);
  if (origin === '' || pages.data === undefined) return null;
  const runs = new Set(own.map((run) => run.run));
  const messages = pages.data.pages.toReversed().flatMap((page) => page.messages);
  const shown = messages.filter((one) => !runs.has(one.run_id) && textOf(one) !== '');
  return (
    <section aria-label={a.earlier} className="mb-2 border-b border-line pb-3">
      {pages.hasNextPage && (
        <button type="button" className="mb-2 text-[13px] text-accent hover:underline" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          {a.showEarlier}
        </button>
      )}
      {shown.map((one) =>
        one.unwritten !== '' ? (
          <p key={one.number} className="mt-3 text-[13px] text-dim">
            {one.unwritten === 'resumed' ? t.resumed : t.report}
          </p>
        ) : one.role === 'user' ? (
          <p key={one.number} dir="auto" className={`mt-3 rounded-lg border border-line bg-side px-3 py-2 break-words whitespace-pre-wrap ${OUT_OF_VIEW}`}>
            {textOf(one)}
          </p>
        ) : (
          <div key={one.number} className={`mt-2 pl-[1.625rem] ${OUT_OF_VIEW}`}>
            <MarkdownView text={textOf(one)} />
          </div>
        ),
      )}
      <p className="mt-3 text-[13px] text-dim">
        <Link href={`/sessions/${origin}`} className="text-accent hover:underline">
          {a.branchedFrom}
        </Link>
      </p>
    </section>
  );
}

function textOf(message: MessageView): string {
  const texts = message.parts.map((part) => (part['type'] === 'text' ? String(part['text']) : ''));
  return texts.join('').trim();
}
