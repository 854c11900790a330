import { useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { useLocation } from 'wouter';
import { api } from '../../api/client';
import { useMessages } from '../../i18n/catalog';
import { useDialogMessages } from '../../i18n/dialogs';
import { useAttempt } from './use_attempt';
import { Dialog } from './dialog';

/** The dialog that renames or deletes a session. */
export function SessionDialog(props: {
  kind: 'rename' | 'delete';
  session: string;
  title: string;
  onClose: () => void;
}) {
  const { kind, session, onClose } = props;
  const t = useMessages();
  const d = useDialogMessages();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [title, setTitle] = useState(props.title);
  const [failure, , attempt] = useAttempt();
  const heading = kind === 'rename' ? d.renameTitle : d.deleteTitle;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    await attempt(async () => {
      if (kind === 'rename') await api.change(session, { title });
      else {
        await api.remove(session);
        navigate('/');
      }
      await queries.invalidateQueries({ queryKey: ['sessions'] });
      onClose();
    });
  };
  return (
    <Dialog label={heading} className="m-auto w-[min(26rem,92vw)] rounded-xl p-4" onClose={onClose}>
      <form onSubmit={submit}>
        <h2 className={`font-semibold ${kind === 'rename' ? 'mb-3' : 'mb-1'}`}>{heading}</h2>
        {kind === 'rename' ? (
          <input
            aria-label={heading}
            value={title}
            maxLength={200}
            onChange={(event) => setTitle(event.target.value)}
            className="w-full rounded-lg border border-line bg-bg px-3 py-1.5"
          />
        ) : (
          <p className="text-dim">{d.deleteText}</p>
        )}
        {failure !== '' && (
          <p role="alert" className="mt-2 text-bad">
            {failure}
          </p>
        )}
        <div className="mt-4 flex justify-end gap-2">
          <button type="button" onClick={onClose} className="rounded-lg px-3 py-1.5 hover:bg-hover">
            {d.cancel}
          </button>
          <button type="submit" className="rounded-lg bg-accent px-3 py-1.5 font-medium text-on-accent">
            {kind === 'rename' ? d.save : t.delete}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
