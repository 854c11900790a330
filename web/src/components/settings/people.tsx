import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { settingsApi } from '../../api/settings';
import type { PairingCode } from '../../api/types.gen';
import { useSettingsMessages } from '../../i18n/settings';
import { formatDay } from '../../lib/format';
import { formatUntil } from '../../lib/relative_time';
import { usePreferences } from '../../state/preferences';
import { Loaded } from './loaded';
import { Table } from './table';

/** The people of chats who have a right, and codes for further ones. */
export function People() {
  const s = useSettingsMessages();
  const queries = useQueryClient();
  const language = usePreferences((preferences) => preferences.language);
  const remove = async (principal: string) => {
    await settingsApi.removePerson(principal).catch(() => undefined);
    await queries.invalidateQueries({ queryKey: ['settings', 'people'] });
  };
  return (
    <>
      <p className="mb-3 text-dim">{s.peopleLead}</p>
      <Loaded name="people" load={settingsApi.people}>
        {({ people }) =>
          people.length === 0 ? (
            <p className="mb-4">{s.noPeople}</p>
          ) : (
            <Table
              label={s.sections.people}
              head={[s.sections.people, s.added, s.remove]}
              rows={people.map((person) => ({
                key: `${person.principal} ${person.role}`,
                cells: [
                  <span key="name" className="isolate-text">
                    {person.name || person.principal}
                    <span className="text-dim">{` · ${s.roles[person.role]}`}</span>
                  </span>,
                  formatDay(person.created, language),
                  <button
                    key="remove"
                    type="button"
                    className="choice"
                    aria-label={s.removePerson(person.name || person.principal)}
                    onClick={() => void remove(person.principal)}
                  >
                    {s.remove}
                  </button>,
                ],
              }))}
            />
          )
        }
      </Loaded>
      <NewCode />
    </>
  );
}

function NewCode() {
  const s = useSettingsMessages();
  const language = usePreferences((preferences) => preferences.language);
  const [code, setCode] = useState<(PairingCode & { made: number }) | null>(null);
  const [failure, setFailure] = useState('');
  const create = (role: 'talk' | 'operate') => () => {
    settingsApi.pair(role).then(
      (made) => setCode({ ...made, made: Date.now() }),
      (error: Error) => setFailure(error.message || s.failed),
    );
  };
  return (
    <>
      <h3 className="mb-1.5 font-medium">{s.newCode}</h3>
      <p className="mb-2 text-[13px] text-dim">{s.codeFor}</p>
      <div className="flex flex-wrap gap-1.5">
        {(['talk', 'operate'] as const).map((role) => (
          <button key={role} type="button" className="choice" onClick={create(role)}>
            {s.roles[role]}
          </button>
        ))}
      </div>
      {code !== null && (
        <p role="status" className="mt-2">
          <span className="exact">{s.code(code.code)}</span> {s.expires(formatUntil(code.expires, code.made, language))}
        </p>
      )}
      {failure !== '' && <p role="alert" className="mt-2 text-bad">{failure}</p>}
    </>
  );
}
