import { useState } from 'react';
import { settingsApi } from '../../api/settings';
import type { ProvidersView, ProviderView } from '../../api/types.gen';
import { useSettingsMessages } from '../../i18n/settings';
import { FindingList } from './findings';
import { Loaded } from './loaded';
import { Table } from './table';
import { useChange, type Change } from './use_change';

const FIELD = 'h-9 min-w-0 rounded-lg border border-line bg-raised px-2';

/** The default model, and the keys of the providers. */
export function Models() {
  const s = useSettingsMessages();
  const change = useChange();
  return (
    <>
      <p className="mb-3 text-dim">{s.modelsLead}</p>
      <Loaded name="providers" load={settingsApi.providers}>
        {(view) => (
          <>
            <DefaultModel view={view} change={change} />
            <h3 className="mb-1.5 font-medium">{s.keys}</h3>
            <Keys view={view} change={change} />
            <NewKey providers={view.providers} change={change} />
            <FindingList findings={change.findings} />
          </>
        )}
      </Loaded>
    </>
  );
}

function DefaultModel({ view, change }: { view: ProvidersView; change: Change }) {
  const s = useSettingsMessages();
  const usable = view.providers.filter((one) => one.key !== 'missing');
  return (
    <>
      <label className="mb-1 flex flex-wrap items-center gap-3">
        <span className="text-dim">{s.defaultModel}</span>
        <select
          className={FIELD}
          value={view.default}
          disabled={change.isBusy || view.set_by !== ''}
          onChange={(event) => void change.change(() => settingsApi.chooseModel(event.target.value), settingsApi.providers)}
        >
          {usable.map((one) => (
            <optgroup key={one.name} label={one.title}>
              {one.models.map((model) => (
                <option key={model} value={`${one.name}:${model}`}>
                  {model}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
      <p className="isolate-text mb-4 text-[13px] text-dim">{view.set_by === '' ? '' : s.setBy(view.set_by)}</p>
    </>
  );
}

function Keys({ view, change }: { view: ProvidersView; change: Change }) {
  const s = useSettingsMessages();
  return (
    <Table
      label={s.keys}
      head={[s.provider, s.key, s.remove]}
      rows={view.providers
        .filter((one) => one.key !== 'not needed')
        .map((one) => ({
          key: one.name,
          cells: [
            one.title,
            one.key === 'missing' ? s.noKey : one.key_origin === 'stored' ? s.stored : s.setBy(one.key_origin),
            one.key_origin === 'stored' && (
              <button
                key="remove"
                type="button"
                className="choice"
                disabled={change.isBusy}
                aria-label={s.removeKey(one.title)}
                onClick={() => void change.change(() => settingsApi.removeKey(one.name), settingsApi.providers)}
              >
                {s.remove}
              </button>
            ),
          ],
        }))}
    />
  );
}

function NewKey({ providers, change }: { providers: readonly ProviderView[]; change: Change }) {
  const s = useSettingsMessages();
  const choices = providers.filter((one) => one.key === 'missing' || one.key_origin === 'stored');
  const [chosen, setChosen] = useState('');
  const [key, setKey] = useState('');
  const name = chosen || (choices[0]?.name ?? '');
  const isReady = key.trim() !== '' && !change.isBusy;
  const store = async () => {
    if (await change.change(() => settingsApi.storeKey(name, key.trim()), settingsApi.providers)) setKey('');
  };
  if (choices.length === 0) return null;
  return (
    <form
      className="flex flex-wrap items-end gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) void store();
      }}
    >
      <label className="flex flex-col gap-1 text-[13px] text-dim">
        {s.provider}
        <select className={`${FIELD} text-ink`} value={name} onChange={(event) => setChosen(event.target.value)}>
          {choices.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
        </select>
      </label>
      <label className="flex min-w-48 flex-1 flex-col gap-1 text-[13px] text-dim">
        {s.key}
        <input
          type="password"
          autoComplete="off"
          spellCheck={false}
          className={`${FIELD} text-ink`}
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
      </label>
      <button
        type="button"
        className="choice"
        disabled={!isReady}
        onClick={() => void change.check(async () => [await settingsApi.checkKey(name, key.trim())])}
      >
        {s.tryKey}
      </button>
      <button type="submit" className="choice choice-primary" disabled={!isReady}>
        {s.storeKey}
      </button>
    </form>
  );
}
