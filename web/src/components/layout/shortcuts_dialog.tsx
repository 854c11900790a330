import { COMMAND } from '../../lib/keyboard';
import { useMessages } from '../../i18n/catalog';
import { useShortcutMessages } from '../../i18n/shortcuts';
import { Dialog } from './dialog';

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const t = useMessages();
  const s = useShortcutMessages();
  const rows: Array<[string, string]> = [
    [`${COMMAND}K`, s.palette],
    ['/', s.composer],
    ['j  k', s.rows],
    ['o', s.open],
    [`${COMMAND}Enter`, s.queue],
    ['y', s.yes],
    ['a', s.session],
    ['p', s.rule],
    ['n', s.no],
    ['e', s.because],
    ['f', s.feedback],
    ['1 – 9', s.options],
    ['Enter', s.answer],
    ['Esc', s.stop],
    ['?', s.list],
  ];
  return (
    <Dialog label={t.shortcuts} className="m-auto w-[min(28rem,92vw)] rounded-xl p-4" onClose={onClose}>
      <h2 className="mb-2 font-semibold">{t.shortcuts}</h2>
      <dl className="grid grid-cols-[auto_1fr] gap-x-5 gap-y-1.5">
        {rows.map(([key, text]) => (
          <div key={key} className="contents">
            <dt className="font-mono text-[13px] text-dim">{key}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={onClose} className="mt-4 rounded-lg border border-line px-3 py-1.5 hover:bg-hover">
        {t.close}
      </button>
    </Dialog>
  );
}
