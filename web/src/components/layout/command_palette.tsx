import { useState, type KeyboardEvent } from 'react';
import { useLocation } from 'wouter';
import { setPreferences, usePreferences } from '../../state/preferences';
import { useMessages } from '../../i18n/catalog';
import { Dialog } from './dialog';
import { useSessions } from './sidebar';

interface Choice {
  id: string;
  text: string;
  act: () => void;
}

const MOST = 50;

/** Finds a session by its title, and whatever the page can do. */
export function CommandPalette({ onClose, onKeys }: { onClose: () => void; onKeys: () => void }) {
  const t = useMessages();
  const { language } = usePreferences();
  const { data } = useSessions();
  const [, navigate] = useLocation();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const go = (act: () => void) => () => {
    onClose();
    act();
  };
  const choices: Choice[] = [
    { id: 'new', text: t.newSession, act: go(() => navigate('/')) },
    { id: 'waiting', text: t.waiting, act: go(() => navigate('/waiting')) },
    ...(data?.sessions ?? []).map((row) => ({
      id: row.session_id,
      text: row.title || t.untitled,
      act: go(() => navigate(`/sessions/${row.session_id}`)),
    })),
    ...(['system', 'light', 'dark'] as const).map((theme) => ({
      id: `theme-${theme}`,
      text: `${t.theme}: ${t.themes[theme]}`,
      act: go(() => setPreferences({ theme })),
    })),
    {
      id: 'language',
      text: t.language,
      act: go(() => setPreferences({ language: language === 'en' ? 'zh' : 'en' })),
    },
    { id: 'keys', text: t.shortcuts, act: onKeys },
  ];
  const wanted = text.trim().toLowerCase();
  const found = choices.filter((one) => one.text.toLowerCase().includes(wanted)).slice(0, MOST);
  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Enter') found[at]?.act();
    else if (event.key === 'ArrowDown') setAt(Math.min(at + 1, found.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label={t.palette} className="mx-auto mt-[12vh] w-[min(34rem,94vw)] rounded-xl p-2" onClose={onClose}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="choices"
        aria-activedescendant={found[at] ? `choice-${found[at].id}` : undefined}
        aria-label={t.palette}
        placeholder={t.palette}
        value={text}
        onKeyDown={press}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        className="w-full rounded-lg bg-transparent px-3 py-2 outline-none!"
      />
      <div id="choices" role="listbox" tabIndex={-1} aria-label={t.palette} className="mt-1 max-h-[50vh] overflow-y-auto">
        {found.map((one, index) => (
          // the keys are those of the field, as in every combobox
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
          <div
            key={one.id}
            tabIndex={-1}
            id={`choice-${one.id}`}
            role="option"
            aria-selected={index === at}
            onClick={one.act}
            onMouseMove={() => setAt(index)}
            className={`cursor-pointer truncate rounded-lg px-3 py-1.5 ${index === at ? 'bg-hover' : ''}`}
          >
            {one.text}
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="px-3 py-1.5 text-dim">{t.nothingFound}</p>}
    </Dialog>
  );
}
