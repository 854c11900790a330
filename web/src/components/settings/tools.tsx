import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { settingsApi } from '../../api/settings';
import type { McpReviewReport, McpServerSummary, McpToolSummary } from '../../api/types.gen';
import { useDecisionMessages } from '../../i18n/decision';
import { useSettingsMessages } from '../../i18n/settings';
import { CodeText, Diff } from '../decision/code_text';
import { Loaded } from './loaded';
import { ReviewDialog } from './review_dialog';

/** The MCP servers, a test that starts one, and a review of its tools. */
export function Tools() {
  const s = useSettingsMessages();
  const [reviewed, setReviewed] = useState('');
  return (
    <>
      <p className="mb-3 text-dim">
        {s.serversLead} <code>larkspur mcp add NAME -- COMMAND</code> · <code>larkspur mcp remove NAME</code>
      </p>
      <Loaded name="servers" load={settingsApi.servers}>
        {({ servers }) =>
          servers.length === 0 ? (
            <p>{s.noServers}</p>
          ) : (
            servers.map((server, at) => (
              // oxlint-disable-next-line react/no-array-index-key -- two unusable servers may have one name
              <Server key={`${at} ${server.name}`} server={server} onReview={() => setReviewed(server.name)} />
            ))
          )
        }
      </Loaded>
      {reviewed !== '' && <Review name={reviewed} onClose={() => setReviewed('')} />}
    </>
  );
}

/** A server, or a problem of the file of all servers, which has no name. */
function Server({ server, onReview }: { server: McpServerSummary; onReview: () => void }) {
  const s = useSettingsMessages();
  return (
    <div role="group" aria-label={server.name} className="mb-2 rounded-lg border border-line px-3 py-2">
      {server.name !== '' && (
        <p className="isolate-text">
          <span className="font-semibold">{server.name}</span>
          <State state={server.state} />
          {server.state !== 'not usable' && <span className="text-dim">{` · ${s.offeredTools(server.tools)}`}</span>}
        </p>
      )}
      <div className="text-[13px]">
        <p className="exact text-dim">{server.target}</p>
        <Problems texts={[server.problem ?? '', ...(server.warnings ?? [])]} />
        {server.state !== 'not usable' && (
          <div className="mt-2 flex flex-wrap items-center gap-2">
            <Test name={server.name} />
            <button type="button" className="choice" aria-label={s.reviewOf(server.name)} onClick={onReview}>
              {s.review}
            </button>
          </div>
        )}
      </div>
    </div>
  );
}

function State({ state }: { state: McpServerSummary['state'] }) {
  const s = useSettingsMessages();
  return <span className={state === 'offered' ? 'text-ok' : 'text-warn'}>{` · ${s.states[state]}`}</span>;
}

function Problems({ texts }: { texts: readonly string[] }) {
  return [...new Set(texts)].map((text) => text !== '' && <p key={text} className="isolate-text text-warn">{text}</p>);
}

/** A button that starts a server and lists its tools, with the result. */
function Test({ name }: { name: string }) {
  const s = useSettingsMessages();
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const [result, setResult] = useState('');
  const [failure, setFailure] = useState('');
  const test = async () => {
    setBusy(true);
    setFailure('');
    setResult(s.starting);
    try {
      const report = await settingsApi.testServer(name);
      await queries.invalidateQueries({ queryKey: ['settings'] });
      setResult(s.listed(report.tools.length));
    } catch (error) {
      setResult('');
      setFailure((error as Error).message || s.failed);
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" className="choice" aria-label={s.testOf(name)} disabled={isBusy} onClick={() => void test()}>
        {s.test}
      </button>
      <p role="status" className="order-last w-full empty:hidden">{result}</p>
      {failure !== '' && <p role="alert" className="isolate-text order-last w-full text-bad">{failure}</p>}
    </>
  );
}

/** What a person should know of a server, and the decision about just this definition and these tools. */
function Review({ name, onClose }: { name: string; onClose: () => void }) {
  const s = useSettingsMessages();
  return (
    <ReviewDialog
      label={s.reviewOf(name)}
      name={`server ${name}`}
      load={() => settingsApi.server(name)}
      canAccept={(report) => report.is_listed}
      decide={({ server }, accept) => settingsApi.reviewServer(name, server.sha256, accept)}
      onClose={onClose}
    >
      {(report) => (
        <>
          <p>
            <code>{report.server.sha256.slice(0, 12)}</code>
            <State state={report.server.state} />
          </p>
          <Definition report={report} />
          <Problems texts={[...(report.server.warnings ?? []), ...report.problems]} />
          {report.changes.length > 0 && (
            <>
              <h3 className="mt-2 text-dim">{s.changes}</h3>
              <Diff text={report.changes.join('\n')} />
            </>
          )}
          {report.is_listed ? (
            <ToolList tools={report.tools} />
          ) : (
            <div className="mt-2 flex flex-wrap items-center gap-2">
              <span>{s.notListed}</span>
              <Test name={name} />
            </div>
          )}
        </>
      )}
    </ReviewDialog>
  );
}

/** The command or address of a server, and what it gets and reaches. */
function Definition({ report }: { report: McpReviewReport }) {
  const s = useSettingsMessages();
  const isCommand = report.host === '';
  const network = isCommand && report.is_isolated && report.network.length === 0 ? [s.noNetwork] : report.network;
  const facts = { ...report, network };
  const title = isCommand ? s.command : s.address;
  return (
    <>
      <h3 className="mt-2 text-dim">{title}</h3>
      <CodeText text={report.server.target} label={title} />
      <dl className="mt-2">
        {(Object.keys(s.serverFacts) as Array<keyof typeof s.serverFacts>).map((key) => {
          const values = [facts[key]].flat().join(', ');
          return (
            values !== '' && (
              <div key={key}>
                <dt className="mr-2 inline text-dim">{s.serverFacts[key]}</dt>
                <dd className="exact inline">{values}</dd>
              </div>
            )
          );
        })}
      </dl>
      {isCommand && !report.is_isolated && <p className="text-warn">{s.notIsolated}</p>}
    </>
  );
}

function ToolList({ tools }: { tools: readonly McpToolSummary[] }) {
  const s = useSettingsMessages();
  const d = useDecisionMessages();
  return (
    <>
      <h3 className="mt-2 text-dim">{s.sections.tools}</h3>
      <div role="region" aria-label={s.sections.tools} tabIndex={0} className="max-h-[40vh] overflow-y-auto rounded-lg border border-line p-2">
        <ul>
          {tools.map((tool) => (
            <li key={tool.name} className="mb-2">
              <code className="exact">{tool.name}</code>
              <span className="text-dim">{` · ${d.risks[tool.risk as keyof typeof d.risks] ?? tool.risk}`}</span>
              <State state={tool.state} />
              <p className="exact border-l-2 border-line pl-2">{tool.description}</p>
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}
