/** Lets a task go on in the background; the composer then starts the next one. */
import { PictureInPicture2 } from 'lucide-react';
import { useState } from 'react';
import { useMessages } from '../../i18n/catalog';
import { moveToBackground } from '../../state/moved_tasks';

export function BackgroundButton({ task }: { task: string }) {
  const t = useMessages();
  const [failure, setFailure] = useState('');
  const move = () => {
    setFailure('');
    moveToBackground(task).catch((error: Error) => setFailure(error.message || t.unreachable));
  };
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
