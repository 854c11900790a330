import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { api } from '../../api/client';
import { settingsApi } from '../../api/settings';
import type { Finding, ProvidersView, ProviderView } from '../../api/types.gen';
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
            <OtherModel key={view.default} view={view} change={change} />
            <h3 className="mb-1.5 font-medium">{s.keys}</h3>
            <Keys view={view} change={change} />
            <NewKey view={view} change={change} />
          </>
        )}
      </Loaded>
    </>
  );
}

function DefaultModel({ view, change }: { view: ProvidersView; change: Change }) {
  const s = useSettingsMessages();
  const usable = view.providers.filter((one) => one.key !== 'missing');
  const { data: me } = useQuery({ queryKey: ['me'], queryFn: api.me });
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
      {me?.is_priced === false && <p className="mb-1 text-[13px] text-warn">{s.unpriced(me.model)}</p>}
      <p className="isolate-text mb-4 text-[13px] text-dim">{view.set_by === '' ? '' : s.setBy(view.set_by)}</p>
    </>
  );
}

/** A model that is not in the list, with the names that the server of its provider lists. */
function OtherModel({ view, change }: { view: ProvidersView; change: Change }) {
  const s = useSettingsMessages();
  const [name, setName] = useState('');
  const [isWanted, setWanted] = useState(false);
  const provider = view.providers.find((one) => view.default.startsWith(`${one.name}:`));
  const { data } = useQuery({
    queryKey: ['settings', 'server models', provider?.name],
    queryFn: () => settingsApi.serverModels(provider?.name ?? ''),
    enabled: isWanted && provider !== undefined,
  });
  if (provider === undefined || provider.name === 'offline' || view.set_by !== '') return null;
  const finding = data?.finding;
  return (
    <form
      className="mb-4 flex flex-wrap items-end gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        void change.change(() => settingsApi.chooseModel(`${provider.name}:${name.trim()}`), settingsApi.providers);
      }}
    >
      <label className="flex min-w-48 flex-1 flex-col gap-1 text-[13px] text-dim">
        {s.otherModel(provider.title)}
        <input
          className={`${FIELD} text-ink`}
          autoComplete="off"
          spellCheck={false}
          list="server-models"
          value={name}
          onFocus={() => setWanted(true)}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <datalist id="server-models">
        {data?.models.map((model) => <option key={model} value={model}>{model}</option>)}
      </datalist>
      <button type="submit" className="choice" disabled={name.trim() === '' || change.isBusy}>
        {s.takeModel}
      </button>
      {finding !== undefined && <p role="status" className="isolate-text w-full text-[13px] text-dim">{finding.sentence}</p>}
    </form>
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

/** Return the provider whose key an address such as `#key` or `#key=MODEL` asks for. */
function wantedProvider(view: ProvidersView): ProviderView | undefined {
  const asked = new URLSearchParams(location.hash.slice(1)).get('key');
  if (asked === null) return undefined;
  const name = asked === '' ? view.default : asked;
  return (
    view.providers.find((one) => name.startsWith(`${one.name}:`)) ??
    view.providers.find((one) => one.models.includes(name)) ??
    view.providers.find((one) => view.default.startsWith(`${one.name}:`))
  );
}

const isChangeable = (one: ProviderView) => one.name !== 'offline' && (one.key !== 'set' || one.key_origin === 'stored');

function NewKey({ view, change }: { view: ProvidersView; change: Change }) {
  const s = useSettingsMessages();
  const choices = view.providers.filter(isChangeable);
  const [wanted] = useState(() => wantedProvider(view));
  const [chosen, setChosen] = useState(wanted?.name ?? '');
  const field = useRef<HTMLInputElement>(null);
  const isElsewhere = wanted !== undefined && wanted.name !== 'offline' && !isChangeable(wanted);
  useEffect(() => {
    if (wanted !== undefined && !isElsewhere) field.current?.focus();
  }, [wanted, isElsewhere]);
  const [key, setKey] = useState('');
  const [typed, setTyped] = useState<string | null>(null);
  const provider = choices.find((one) => one.name === chosen) ?? choices[0];
  if (provider === undefined) return <FindingList findings={change.findings} />;
  const address = (typed ?? provider.base_url ?? '').trim();
  const isReady = !change.isBusy && (key.trim() !== '' || typed !== null || provider.key === 'not needed');
  const store = async () => {
    const access = {
      ...(key.trim() === '' ? {} : { key: key.trim() }),
      ...(typed === null ? {} : { base_url: address }),
    };
    if (await change.change(() => settingsApi.storeKey(provider.name, access), settingsApi.providers)) {
      setKey('');
      setTyped(null);
    }
  };
  const check = async () => {
    const access = { ...(key.trim() === '' ? {} : { key: key.trim() }), ...(address === '' ? {} : { base_url: address }) };
    return [await settingsApi.checkKey(provider.name, access)];
  };
  const takeOver = (finding: Finding) => {
    if (finding.provider !== undefined && finding.provider !== '') setChosen(finding.provider);
    setTyped(finding.base_url ?? '');
  };
  return (
    <>
      {isElsewhere && (
        <p role="status" className="isolate-text mb-2 text-warn">
          {s.keySetElsewhere(wanted.title, wanted.key_origin)}
        </p>
      )}
      <form
        className="flex flex-wrap items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) void store();
        }}
      >
        <label className="flex flex-col gap-1 text-[13px] text-dim">
          {s.provider}
          <select
            className={`${FIELD} text-ink`}
            value={provider.name}
            onChange={(event) => {
              setChosen(event.target.value);
              setTyped(null);
            }}
          >
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
            ref={field}
            type="password"
            autoComplete="off"
            spellCheck={false}
            className={`${FIELD} text-ink`}
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        <label className="flex min-w-48 flex-1 flex-col gap-1 text-[13px] text-dim">
          {s.modelAddress}
          <input
            inputMode="url"
            autoComplete="off"
            spellCheck={false}
            className={`${FIELD} text-ink`}
            placeholder={provider.address}
            value={typed ?? provider.base_url ?? ''}
            onChange={(event) => setTyped(event.target.value)}
          />
        </label>
        <button type="button" className="choice" disabled={!isReady} onClick={() => void change.check(check)}>
          {s.tryKey}
        </button>
        <button type="submit" className="choice choice-primary" disabled={!isReady}>
          {s.storeKey}
        </button>
      </form>
      <FindingList findings={change.findings} onUse={takeOver} />
    </>
  );
}
