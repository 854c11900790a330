import { useEffect, useState } from 'react';
import { listCommands, readCommand, stopCommand, type BackgroundCommand, type PrintedOutput } from '../../api/commands';
import { useFileMessages } from '../../i18n/files';
import { useAttempt } from './use_attempt';

/** No event tells that a command has ended: while one runs, the list is loaded again so often. */
const REFRESH_MS = 5_000;
const OUTPUT_REFRESH_MS = 2_000;

/**
 * The background commands of a session, nothing if there are none. They are loaded again when
 * `changes` has another value: how many tool calls and runs have ended.
 */
export function BackgroundCommands({ session, changes }: { session: string; changes: number }) {
  const f = useFileMessages();
  const [{ commands }, setLoaded] = useState<{ version: number; commands: readonly BackgroundCommand[] }>({ version: 0, commands: [] });
  const [refreshes, setRefreshes] = useState(0);
  const version = changes + refreshes;
  const [failure, , attempt] = useAttempt();
  const [opened, setOpened] = useState('');
  const running = commands.some((command) => command.ended == null);

  useEffect(() => {
    let current = true;
    listCommands(session)
      .then((found) => current && setLoaded({ version, commands: found }))
      .catch(() => undefined); // the page says itself when the gateway cannot be reached
    return () => {
      current = false;
    };
  }, [session, version]);

  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => document.hidden || setRefreshes((count) => count + 1), REFRESH_MS);
    return () => clearInterval(timer);
  }, [running]);

  if (commands.length === 0) return null;
  const stop = async (id: string) => {
    await attempt(() => stopCommand(session, id));
    setRefreshes((count) => count + 1);
  };
  return (
    <section className="mb-6" aria-labelledby="background-commands">
      <h2 id="background-commands" className="mb-1.5 text-xs text-dim">
        {f.commands}
      </h2>
      {failure !== '' && (
        <p role="alert" className="mb-2 text-bad">
          {failure}
        </p>
      )}
      <ul>
        {commands.toReversed().map((command) => (
          <li key={command.id} className="py-0.5">
            <div className="flex items-center gap-2">
            <button
              type="button"
              aria-expanded={opened === command.id}
              onClick={() => setOpened(opened === command.id ? '' : command.id)}
              className="min-w-0 flex-1 rounded-md text-left hover:bg-hover"
            >
              <code className="block truncate text-[13px]" title={command.command}>
                {command.command}
              </code>
              <span className="block text-[13px] text-dim">{f.commandState(command.ended == null, command.exit_code ?? null, command.kept)}</span>
              {command.address !== '' && <span className="block font-mono text-[13px] break-all">{command.address}</span>}
            </button>
            {command.ended == null && (
              <button type="button" className="choice" aria-label={f.stopCommand(command.command)} onClick={() => void stop(command.id)}>
                {f.stop}
              </button>
            )}
            </div>
            {opened === command.id && <Output key={command.id} session={session} command={command} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The end of what a command printed; it is read again while the command runs. */
function Output({ session, command }: { session: string; command: BackgroundCommand }) {
  const f = useFileMessages();
  const [output, setOutput] = useState<PrintedOutput | null>();
  const running = command.ended == null;
  useEffect(() => {
    let current = true;
    const read = () =>
      readCommand(session, command.id).then(
        (found) => current && setOutput(found),
        () => current && setOutput((known) => known ?? null),
      );
    void read();
    const timer = running ? setInterval(() => document.hidden || void read(), OUTPUT_REFRESH_MS) : undefined;
    return () => {
      current = false;
      clearInterval(timer);
    };
  }, [session, command.id, running]);
  if (output === undefined) return null;
  if (output === null) return <p className="text-[13px] text-bad">{f.commandUnreadable}</p>;
  return (
    <>
      {output.missing_bytes > 0 && <p className="text-[13px] text-dim">{f.earlierCommandOutput}</p>}
      <div
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls
        tabIndex={0}
        role="region"
        aria-label={f.commandOutput(command.command)}
        // reversed: the newest line is in view
        className="mt-1 flex max-h-64 flex-col-reverse overflow-auto rounded-lg border border-line bg-raised p-2 text-xs"
      >
        <pre className="break-words whitespace-pre-wrap">{output.text.trimEnd() || f.noCommandOutput}</pre>
      </div>
      {output.end !== '' && <p className="mt-0.5 text-[13px] whitespace-pre-wrap text-dim">{output.end}</p>}
    </>
  );
}
