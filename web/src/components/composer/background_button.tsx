/** Lets a task go on in the background; the composer then starts the next one. */
import { PictureInPicture2 } from 'lucide-react';
import { useMessages } from '../../i18n/catalog';
import { moveToBackground } from '../../state/moved_tasks';
import { useAttempt } from '../layout/use_attempt';

export function BackgroundButton({ task }: { task: string }) {
  const t = useMessages();
  const [failure, , attempt] = useAttempt();
  const move = () => void attempt(() => moveToBackground(task));
  return (
    <>
      {failure !== '' && (
        <span role="alert" className="text-[13px] text-bad">
          {failure}
        </span>
      )}
      <button type="button" className="bar-button" title={t.toBackground} aria-label={t.toBackground} onClick={move}>
        <PictureInPicture2 size={16} aria-hidden="true" />
      </button>
    </>
  );
}
