import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { settingsApi } from '../../api/settings';
import type { DeadLetter } from '../../api/types.gen';
import { useOperationMessages } from '../../i18n/operation';
import { Loaded } from '../settings/loaded';
import { Table } from '../settings/table';
import { useMoment } from './use_moment';

/** The messages and runs that were given up, until they are retried or dismissed. */
export function DeadLetters() {
  const s = useOperationMessages();
  const queries = useQueryClient();
  const moment = useMoment();
  const [failure, setFailure] = useState('');
  const act = async (work: Promise<unknown>) => {
    setFailure('');
    await work.catch((error: Error) => setFailure(error.message || s.failed));
    await queries.invalidateQueries({ queryKey: ['settings', 'dead letters'] });
  };
  return (
    <>
      <p className="mb-3 text-dim">{s.deadLettersLead}</p>
      {failure !== '' && <p role="alert" className="mb-3 text-bad">{failure}</p>}
      <Loaded name="dead letters" load={settingsApi.deadLetters}>
        {({ dead_letters: letters }) =>
          letters.length === 0 ? (
            <p>{s.noDeadLetters}</p>
          ) : (
            <Table
              label={s.letters}
              head={[s.letters, s.givenUp, s.decision]}
              rows={letters.map((letter) => ({
                key: letter.id,
                cells: [
                  <Description key="letter" letter={letter} />,
                  moment(letter.given_up_at),
                  <Decision
                    key="decision"
                    letter={letter}
                    onRetry={() => void act(settingsApi.retryLetter(letter.id, letter.may_have_been_sent ?? false))}
                    onDismiss={() => void act(settingsApi.dismissLetter(letter.id))}
                  />,
                ],
              }))}
            />
          )
        }
      </Loaded>
    </>
  );
}

function Description({ letter }: { letter: DeadLetter }) {
  const s = useOperationMessages();
  const words = letter.kind === 'outgoing' ? letter.text || letter.about : letter.about;
  return (
    <span className="isolate-text">
      {s.letterKinds[letter.kind]}
      <span className="text-dim">{` · ${letter.chat_id || letter.channel}`}</span>
      {words && <span className="line-clamp-2 break-words">{words}</span>}
      <span className="block break-words text-bad">{letter.reason}</span>
      {letter.may_have_been_sent && <span className="block">{s.mayAppearTwice}</span>}
    </span>
  );
}

function Decision({ letter, onRetry, onDismiss }: { letter: DeadLetter; onRetry: () => void; onDismiss: () => void }) {
  const s = useOperationMessages();
  const retry = letter.may_have_been_sent ? s.sendAnyway : s.retry;
  return (
    <span className="flex flex-wrap gap-1.5">
      <button type="button" className="choice" aria-label={`${retry} ${letter.id}`} onClick={onRetry}>
        {retry}
      </button>
      <button type="button" className="choice" aria-label={`${s.dismiss} ${letter.id}`} onClick={onDismiss}>
        {s.dismiss}
      </button>
    </span>
  );
}
