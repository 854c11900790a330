import { COMMAND } from '../keyboard';
import { useWords } from '../words';
import { Modal } from './sheet';

export function Keys({ onClose }: { onClose: () => void }) {
  const words = useWords();
  const rows: Array<[string, string]> = [
    [`${COMMAND}K`, words.keys.palette],
    ['/', words.keys.composer],
    ['j  k', words.keys.rows],
    ['o', words.keys.open],
    [`${COMMAND}Enter`, words.keys.queue],
    ['y', words.keys.yes],
    ['a', words.keys.session],
    ['p', words.keys.rule],
    ['n', words.keys.no],
    ['e', words.keys.because],
    ['f', words.keys.feedback],
    ['1 – 9', words.keys.options],
    ['Enter', words.keys.answer],
    ['Esc', words.keys.stop],
    ['?', words.keys.sheet],
  ];
  return (
    <Modal label={words.shortcuts} className="m-auto w-[min(28rem,92vw)] rounded-xl p-4" onClose={onClose}>
      <h2 className="mb-2 font-semibold">{words.shortcuts}</h2>
      <dl className="grid grid-cols-[auto_1fr] gap-x-5 gap-y-1.5">
        {rows.map(([key, text]) => (
          <div key={key} className="contents">
            <dt className="font-mono text-[13px] text-dim">{key}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={onClose} className="mt-4 rounded-lg border border-line px-3 py-1.5 hover:bg-hover">
        {words.close}
      </button>
    </Modal>
  );
}
