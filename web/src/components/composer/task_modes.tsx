/** How the next tasks of a session ask: the permission mode, and whether plans are reviewed. */
import { ListChecks, ShieldAlert } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { MeView, Mode } from '../../api/client';
import { useMessages } from '../../i18n/catalog';
import { useModeMessages } from '../../i18n/modes';
import { useListed } from '../../state/sessions';
import { isWider, MODES, modeOf, offeredModes, reviewsPlans, setTaskOptions, useTaskOptions } from '../../state/task_options';

interface Props {
  session: string | null;
  me: MeView | undefined;
}

/** A button with the permission mode, amber if it is wider than the default, and a dialog to choose one. */
export function ModeButton({ session, me }: Props) {
  const t = useMessages();
  const name = session ?? 'new';
  const mode = modeOf(useTaskOptions(name), useListed(session), me);
  const [isOpen, setOpen] = useState(false);
  const wider = isWider(mode, me);
  return (
    <>
      <button
        type="button"
        title={t.mode}
        aria-label={`${t.mode}: ${t.modes[mode]}`}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
        className={`bar-button w-auto! gap-1 px-1.5 text-[13px] ${wider ? 'text-warn!' : ''}`}
      >
        {wider && <ShieldAlert size={15} aria-hidden="true" className="flex-none" />}
        <span className="truncate">{t.modes[mode]}</span>
      </button>
      {isOpen && <ModeDialog name={name} mode={mode} me={me} onClose={() => setOpen(false)} />}
    </>
  );
}

export function ReviewButton({ session }: Pick<Props, 'session'>) {
  const t = useMessages();
  const name = session ?? 'new';
  const review = reviewsPlans(useTaskOptions(name), useListed(session));
  return (
    <button
      type="button"
      aria-pressed={review}
      aria-label={t.reviewPlan}
      title={t.reviewPlan}
      onClick={() => setTaskOptions(name, { review: review ? 'off' : 'on' })}
      className={`bar-button w-auto! gap-1.5 px-2 text-[13px] ${review ? 'text-accent!' : ''}`}
    >
      <ListChecks size={16} aria-hidden="true" />
      {review && <span className="max-[719px]:hidden">{t.reviewPlan}</span>}
    </button>
  );
}

function ModeDialog(props: { name: string; mode: Mode; me: MeView | undefined; onClose: () => void }) {
  const { me } = props;
  const t = useMessages();
  const m = useModeMessages();
  const offered = offeredModes(me);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const choose = (mode: Mode) => {
    setTaskOptions(props.name, { mode });
    dialog.current?.close();
  };
  return (
    <dialog ref={dialog} aria-label={t.mode} closedby="any" onClose={props.onClose} className="m-auto w-[min(28rem,calc(100vw-2rem))] rounded-xl border border-line bg-raised p-2">
      <ul>
        {MODES.filter((mode) => mode === props.mode || offered.includes(mode)).map((mode) => (
          <li key={mode}>
            <button
              type="button"
              aria-pressed={mode === props.mode}
              onClick={() => choose(mode)}
              className="w-full rounded-lg border border-transparent px-3 py-2 text-left hover:bg-hover aria-pressed:border-accent"
            >
              <span className={`font-medium ${isWider(mode, me) ? 'text-warn' : ''}`}>{t.modes[mode]}</span>
              {mode === me?.permission_mode && <span className="ml-2 text-[13px] text-dim">{m.byDefault}</span>}
              <span className="block text-[13px] text-dim">{m.sentences[mode]}</span>
            </button>
          </li>
        ))}
      </ul>
      <p className="px-3 pt-1 pb-2 text-[13px] text-dim">{me?.isolated ? m.isolated : m.notIsolated}</p>
    </dialog>
  );
}
