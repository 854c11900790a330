import type { MeView } from '../api';
import { useConversation } from '../conversation';
import { useWords } from '../words';
import { Empty } from './empty';
import { Thread } from './thread';

/** The middle of the page: what a session shows, or what a person may try. */
export function Stage({ session, me }: { session: string | null; me: MeView | undefined }) {
  const words = useWords();
  const phase = useConversation((one) => one.phase);
  const shown = useConversation((one) => one.session);
  if (session === null) return <Empty me={me} />;
  if (phase === 'missing') return <Note text={words.missing} />;
  if (shown !== session || phase !== 'ready') return <Note text={words.loading} />;
  return <Thread />;
}

function Note({ text }: { text: string }) {
  return <p className="flex flex-1 items-center justify-center p-6 text-dim">{text}</p>;
}
