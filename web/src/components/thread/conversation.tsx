import type { MeView } from '../../api/client';
import { useSessionStore } from '../../state/session_store';
import { useMessages } from '../../i18n/catalog';
import { Welcome } from './welcome';
import { Thread } from './thread';

/** The middle of the page: what a session shows, or what a person may try. */
export function Conversation({ session, me }: { session: string | null; me: MeView | undefined }) {
  const t = useMessages();
  const phase = useSessionStore((one) => one.phase);
  const shown = useSessionStore((one) => one.session);
  if (session === null) return <Welcome me={me} />;
  if (phase === 'missing') return <AnswerNotice text={t.missing} />;
  if (shown !== session || phase !== 'ready') return <AnswerNotice text={t.loading} />;
  return <Thread />;
}

function AnswerNotice({ text }: { text: string }) {
  return <p className="flex flex-1 items-center justify-center p-6 text-dim">{text}</p>;
}
