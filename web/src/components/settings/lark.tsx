import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { settingsApi } from '../../api/settings';
import type { LarkAppView } from '../../api/types.gen';
import { useSettingsMessages } from '../../i18n/settings';
import { FindingList } from './findings';
import { Loaded } from './loaded';
import { useChange, type Change } from './use_change';

const HEALTH_REFRESH_MS = 5_000;
const CHECK_STALE_MS = 60_000;

/** The app of the Lark channel. */
export function Lark() {
  const s = useSettingsMessages();
  const change = useChange();
  return (
    <>
      <p className="mb-3 text-dim">{s.larkLead}</p>
      <Loaded name="lark" load={settingsApi.lark}>
        {(app) => (
          <>
            <p className="isolate-text mb-2">{describe(app, s)}</p>
            {app.enabled && <Connection app={app} />}
            {app.set_by === '' && <AppForm app={app} change={change} />}
            <FindingList findings={change.findings} />
          </>
        )}
      </Loaded>
    </>
  );
}

const time = (text: string) => new Date(text).toLocaleString();

/** The state of the connection, which is read again while it is shown, and what its app is missing. */
function Connection({ app }: { app: LarkAppView }) {
  const s = useSettingsMessages();
  const { data } = useQuery({ queryKey: ['lark-health'], queryFn: settingsApi.larkHealth, refetchInterval: HEALTH_REFRESH_MS });
  const { data: checked } = useQuery({
    queryKey: ['lark-check', app.app_id, app.domain],
    queryFn: () => settingsApi.checkLark({}),
    staleTime: CHECK_STALE_MS,
    retry: false,
  });
  if (data === undefined) return null;
  if (data === null) return <p className="mb-4 text-warn">{s.larkNotRunning}</p>;
  const { detail = '', last_event: lastEvent = '' } = data;
  return (
    <div role="status" aria-label={s.larkState} className="mb-4">
      <p className={`isolate-text ${data.ok ? '' : 'text-warn'}`}>{data.ok ? s.larkOk(time(data.since)) : s.larkTrouble(inLanguage(detail, s), time(data.since))}</p>
      <p className="text-dim">{lastEvent === '' ? s.larkNoEvent : s.larkLastEvent(time(lastEvent))}</p>
      {checked === undefined ? <p className="text-dim">{s.larkChecking}</p> : <FindingList findings={checked.findings} />}
    </div>
  );
}

/** Return the state of a connection with its first word, which is one of few, in the language of the page. */
function inLanguage(detail: string, s: ReturnType<typeof useSettingsMessages>): string {
  const [status = ''] = /^\w*/u.exec(detail) ?? [];
  return `${s.larkStatus[status] ?? status}${detail.slice(status.length)}`;
}

function describe(app: LarkAppView, s: ReturnType<typeof useSettingsMessages>): string {
  if (app.set_by !== '') return s.setBy(app.set_by);
  if (app.simulated) return s.larkSimulated;
  return app.enabled ? s.larkConnected(app.app_id, app.domain) : s.larkOff;
}

function AppForm({ app, change }: { app: LarkAppView; change: Change }) {
  const s = useSettingsMessages();
  const isStored = app.enabled && !app.simulated;
  const [id, setId] = useState(isStored ? app.app_id : '');
  const [secret, setSecret] = useState('');
  const [domain, setDomain] = useState(isStored ? app.domain : 'feishu');
  const given = { app_id: id.trim(), app_secret: secret.trim(), domain: domain.trim() };
  const isReady = !change.isBusy && Object.values(given).every((text) => text !== '');
  const check = () => change.check(async () => (await settingsApi.checkLark(given)).findings);
  const connect = async () => {
    if ((await check()) && (await change.change(() => settingsApi.connectLark(given), settingsApi.lark))) setSecret('');
  };
  return (
    <form
      className="flex max-w-[480px] flex-col gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) void connect();
      }}
    >
      <Field label={s.appId} value={id} onChange={setId} />
      <Field label={s.appSecret} value={secret} onChange={setSecret} isSecret />
      <Field label={s.larkServer} value={domain} onChange={setDomain} />
      <div className="mt-1 flex flex-wrap gap-2">
        <button
          type="button"
          className="choice"
          disabled={!isReady}
          onClick={() => void check()}
        >
          {s.check}
        </button>
        <button type="submit" className="choice choice-primary" disabled={!isReady}>
          {s.connect}
        </button>
        {isStored && (
          <button
            type="button"
            className="choice"
            disabled={change.isBusy}
            onClick={() => void change.change(settingsApi.disconnectLark, settingsApi.lark)}
          >
            {s.disconnect}
          </button>
        )}
      </div>
    </form>
  );
}

function Field(props: { label: string; value: string; onChange: (text: string) => void; isSecret?: boolean }) {
  return (
    <label className="flex flex-col gap-1 text-[13px] text-dim">
      {props.label}
      <input
        type={props.isSecret === true ? 'password' : 'text'}
        className="h-9 rounded-lg border border-line bg-raised px-2 text-ink"
        autoComplete="off"
        spellCheck={false}
        value={props.value}
        onChange={(event) => props.onChange(event.target.value)}
      />
    </label>
  );
}
