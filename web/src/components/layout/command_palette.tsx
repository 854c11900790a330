import { useState, type KeyboardEvent } from 'react';
import { useLocation } from 'wouter';
import { setPreferences, usePreferences } from '../../state/preferences';
import { useMessages } from '../../i18n/catalog';
import { useDialogMessages } from '../../i18n/dialogs';
import { useSessions } from '../../state/sessions';
import { Dialog } from './dialog';

interface Command {
  id: string;
  text: string;
  run: () => void;
}

const MAX_RESULTS = 50;

/** Search sessions by title, and run the commands of the page. */
export function CommandPalette({ onClose, onShortcuts }: { onClose: () => void; onShortcuts: () => void }) {
  const t = useMessages();
  const d = useDialogMessages();
  const { language } = usePreferences();
  const { data } = useSessions();
  const [, navigate] = useLocation();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const closeAnd = (run: () => void) => () => {
    onClose();
    run();
  };
  const commands: Command[] = [
    { id: 'new', text: t.newSession, run: closeAnd(() => navigate('/')) },
    { id: 'waiting', text: t.waiting, run: closeAnd(() => navigate('/waiting')) },
    { id: 'library', text: t.library, run: closeAnd(() => navigate('/library')) },
    { id: 'settings', text: t.settings, run: closeAnd(() => navigate('/settings')) },
    ...(data?.sessions ?? []).map((row) => ({
      id: row.session_id,
      text: row.title || t.untitled,
      run: closeAnd(() => navigate(`/sessions/${row.session_id}`)),
    })),
    ...(['system', 'light', 'dark'] as const).map((theme) => ({
      id: `theme-${theme}`,
      text: `${t.theme}: ${t.themes[theme]}`,
      run: closeAnd(() => setPreferences({ theme })),
    })),
    {
      id: 'language',
      text: t.language,
      run: closeAnd(() => setPreferences({ language: language === 'en' ? 'zh' : 'en' })),
    },
    { id: 'keys', text: t.shortcuts, run: onShortcuts },
  ];
  const wanted = text.trim().toLowerCase();
  const found = commands.filter((one) => one.text.toLowerCase().includes(wanted)).slice(0, MAX_RESULTS);
  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Enter') found[at]?.run();
    else if (event.key === 'ArrowDown') setAt(Math.min(at + 1, found.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label={d.palette} className="mx-auto mt-[12vh] w-[min(34rem,94vw)] rounded-xl p-2" onClose={onClose}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="choices"
        aria-activedescendant={found[at] ? `choice-${found[at].id}` : undefined}
        aria-label={d.palette}
        placeholder={d.palette}
        value={text}
        onKeyDown={press}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        className="w-full rounded-lg bg-transparent px-3 py-2 outline-none!"
      />
      <div id="choices" role="listbox" tabIndex={-1} aria-label={d.palette} className="mt-1 max-h-[50vh] overflow-y-auto">
        {found.map((one, index) => (
          // the text field handles the keys, as in every combobox
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
          <div
            key={one.id}
            tabIndex={-1}
            id={`choice-${one.id}`}
            role="option"
            aria-selected={index === at}
            onClick={one.run}
            onMouseMove={() => setAt(index)}
            className={`cursor-pointer truncate rounded-lg px-3 py-1.5 ${index === at ? 'bg-hover' : ''}`}
          >
            {one.text}
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="px-3 py-1.5 text-dim">{d.nothingFound}</p>}
    </Dialog>
  );
}
