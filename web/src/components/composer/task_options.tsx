import { useQuery } from '@tanstack/react-query';
import { SlidersHorizontal } from 'lucide-react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { api } from '../../api/client';
import { useTaskOptionMessages } from '../../i18n/task_options';
import { CHOOSE_MODEL_EVENT, setTaskOptions, useTaskOptions } from '../../state/task_options';

const NETWORKS = ['off', 'registries', 'open'] as const;
const FIELD = 'w-full rounded-lg border border-line bg-bg px-2 py-1.5';

/** A button that shows what the next task uses, and a dialog to choose it. */
export function TaskOptions({ name }: { name: string }) {
  const a = useTaskOptionMessages();
  const [isOpen, setOpen] = useState(false);
  const options = useTaskOptions(name);
  const chosen = [options.model, options.profile, options.workspace.split('/').findLast((part) => part !== '')];
  const label = chosen.filter(Boolean).join(' · ');
  useEffect(() => {
    const open = () => setOpen(true);
    addEventListener(CHOOSE_MODEL_EVENT, open);
    return () => removeEventListener(CHOOSE_MODEL_EVENT, open);
  }, []);
  return (
    <>
      <button
        type="button"
        title={a.title}
        aria-label={label === '' ? a.title : `${a.title}: ${label}`}
        onClick={() => setOpen(true)}
        className="bar-button w-auto! max-w-48 gap-1.5 px-2 text-[13px]"
      >
        <SlidersHorizontal size={15} aria-hidden="true" className="flex-none" />
        {label !== '' && <span className="truncate">{label}</span>}
      </button>
      {isOpen && <OptionsDialog name={name} onClose={() => setOpen(false)} />}
    </>
  );
}

function OptionsDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const a = useTaskOptionMessages();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={a.title} closedby="any" onClose={onClose} className="m-auto w-[min(24rem,calc(100vw-2rem))] rounded-xl border border-line bg-raised p-4">
      <Fields name={name} />
      <form method="dialog" className="mt-4 flex justify-end">
        <button type="submit" className="choice choice-primary">
          {a.done}
        </button>
      </form>
    </dialog>
  );
}

function Fields({ name }: { name: string }) {
  const a = useTaskOptionMessages();
  const options = useTaskOptions(name);
  const { data: me } = useQuery({ queryKey: ['me'], queryFn: api.me });
  const { data: models } = useQuery({ queryKey: ['models'], queryFn: api.models, staleTime: 60_000 });
  const { data: profiles } = useQuery({ queryKey: ['profiles'], queryFn: api.profiles, staleTime: 60_000 });
  const known = (models?.models ?? []).filter((one) => one.available).map((one) => one.name);
  const names = options.model === '' || known.includes(options.model) ? known : [options.model, ...known];
  return (
    <div className="flex flex-col gap-3">
      <Field label={a.model}>
        <select className={FIELD} value={options.model} onChange={(event) => setTaskOptions(name, { model: event.target.value })}>
          <option value="">{a.byDefault(me?.model ?? '')}</option>
          {names.filter((one) => one !== me?.model).map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </Field>
      {(profiles?.profiles.length ?? 0) > 1 && (
        <Field label={a.profile}>
          <select className={FIELD} value={options.profile} onChange={(event) => setTaskOptions(name, { profile: event.target.value })}>
            <option value="">{a.byDefault(profiles?.default ?? '')}</option>
            {profiles?.profiles.filter((one) => one.name !== profiles.default).map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </Field>
      )}
      {me?.roles.includes('owner') && (
        <Field label={a.folder}>
          <input
            className={`${FIELD} font-mono text-[13px]`}
            value={options.workspace}
            placeholder={a.folderHint}
            spellCheck={false}
            onChange={(event) => setTaskOptions(name, { workspace: event.target.value.trim() })}
          />
        </Field>
      )}
      {me?.isolated && (
        <Field label={a.network}>
          <select className={FIELD} value={options.network} onChange={(event) => setTaskOptions(name, { network: event.target.value })}>
            <option value="">{a.byDefault(me.network === 'hosts' ? undefined : a.networks[me.network])}</option>
            {NETWORKS.filter((one) => one === 'off' || me.roles.includes('owner')).map((one) => (
              <option key={one} value={one}>
                {a.networks[one]}
              </option>
            ))}
          </select>
        </Field>
      )}
    </div>
  );
}

function Field({ label, children }: { label: string; children: ReactNode }) {
  return (
    <label className="block">
      <span className="mb-1 block text-[13px] text-dim">{label}</span>
      {children}
    </label>
  );
}
