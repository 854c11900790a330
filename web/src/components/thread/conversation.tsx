import type { MeView } from '../../api/client';
import { Suspense } from 'react';
import { Link } from 'wouter';
import { useSessionStore } from '../../state/session_store';
import { useMessages } from '../../i18n/catalog';
import { lazyComponent } from '../../lib/lazy';
import { Thread } from './thread';

const Welcome = lazyComponent(() => import('./welcome').then((module) => module.Welcome));

/** The thread of a session; the start page without one. */
export function Conversation({ session, me }: { session: string | null; me: MeView | undefined }) {
  const t = useMessages();
  const phase = useSessionStore((store) => store.phase);
  const shown = useSessionStore((store) => store.session);
  if (session === null) {
    return (
      <Suspense fallback={<div className="flex-1" />}>
        <Welcome me={me} />
      </Suspense>
    );
  }
  if (phase === 'missing') {
    return (
      <div className="flex flex-1 flex-col items-center justify-center gap-3 p-6">
        <p className="text-dim">{t.missing}</p>
        <Link href="/" className="choice">
          {t.newSession}
        </Link>
      </div>
    );
  }
  if (shown !== session || phase !== 'ready') return <Placeholder text={t.loading} />;
  return <Thread />;
}

function Placeholder({ text }: { text: string }) {
  return <p className="flex flex-1 items-center justify-center p-6 text-dim">{text}</p>;
}
