import { useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useSettingsMessages } from '../../i18n/settings';
import { Dialog } from '../layout/dialog';
import { Loaded } from './loaded';

/** A report that a person accepts or rejects as it is shown. `name` is that of its query. */
export function ReviewDialog<T>(props: {
  label: string;
  name: string;
  load: () => Promise<T>;
  canAccept?: (report: T) => boolean;
  decide: (report: T, accept: boolean) => Promise<unknown>;
  onClose: () => void;
  children: (report: T) => ReactNode;
}) {
  const s = useSettingsMessages();
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  const decide = async (report: T, accept: boolean) => {
    setBusy(true);
    setFailure('');
    const failed = await props.decide(report, accept).then(
      () => null,
      (error: Error) => error.message || s.failed,
    );
    // if the decision was about something that has changed: show what is there now
    await queries.invalidateQueries({ queryKey: ['settings'] });
    setBusy(false);
    if (failed === null) props.onClose();
    else setFailure(failed);
  };
  return (
    <Dialog label={props.label} className="m-auto max-h-[90vh] w-[min(46rem,94vw)] overflow-y-auto rounded-xl p-4 text-[13px]" onClose={props.onClose}>
      <h2 className="isolate-text text-[17px] font-semibold">{props.label}</h2>
      <Loaded name={props.name} load={props.load}>
        {(report) => (
          <>
            {props.children(report)}
            {failure !== '' && <p role="alert" className="isolate-text mt-2 text-bad">{failure}</p>}
            <div className="mt-3 flex justify-end gap-2">
              <button type="button" className="choice" disabled={isBusy} onClick={() => void decide(report, false)}>
                {s.reject}
              </button>
              <button
                type="button"
                className="choice choice-primary"
                disabled={isBusy || props.canAccept?.(report) === false}
                onClick={() => void decide(report, true)}
              >
                {s.accept}
              </button>
            </div>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}
