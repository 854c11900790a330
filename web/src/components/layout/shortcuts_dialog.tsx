import { COMMAND } from '../../lib/keyboard';
import { useMessages } from '../../i18n/catalog';
import { Dialog } from './dialog';

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const t = useMessages();
  const rows: Array<[string, string]> = [
    [`${COMMAND}K`, t.keys.palette],
    ['/', t.keys.composer],
    ['j  k', t.keys.rows],
    ['o', t.keys.open],
    [`${COMMAND}Enter`, t.keys.queue],
    ['y', t.keys.yes],
    ['a', t.keys.session],
    ['p', t.keys.rule],
    ['n', t.keys.no],
    ['e', t.keys.because],
    ['f', t.keys.feedback],
    ['1 – 9', t.keys.options],
    ['Enter', t.keys.answer],
    ['Esc', t.keys.stop],
    ['?', t.keys.sheet],
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
