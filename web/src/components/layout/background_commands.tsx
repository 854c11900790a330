import { useEffect, useState } from 'react';
import { listCommands, stopCommand, type BackgroundCommand } from '../../api/commands';
import { useMessages } from '../../i18n/catalog';
import { useFileMessages } from '../../i18n/files';

/** No event tells that a command has ended: while one runs, the list is loaded again so often. */
const REFRESH_MS = 5_000;

/**
 * The background commands of a session, nothing if there are none. They are loaded again when
 * `changes` has another value: how many tool calls and runs have ended.
 */
export function BackgroundCommands({ session, changes }: { session: string; changes: number }) {
  const t = useMessages();
  const f = useFileMessages();
  const [{ commands }, setLoaded] = useState<{ version: number; commands: readonly BackgroundCommand[] }>({ version: 0, commands: [] });
  const [refreshes, setRefreshes] = useState(0);
  const version = changes + refreshes;
  const [failure, setFailure] = useState('');
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
  const stop = (id: string) => {
    setFailure('');
    stopCommand(session, id)
      .catch((error: Error) => setFailure(error.message || t.unreachable))
      .finally(() => setRefreshes((count) => count + 1));
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
          <li key={command.id} className="flex items-center gap-2 py-0.5">
            <div className="min-w-0 flex-1">
              <code className="block truncate text-[13px]" title={command.command}>
                {command.command}
              </code>
              <span className="text-[13px] text-dim">{f.commandState(command.ended == null, command.exit_code ?? null, command.kept)}</span>
            </div>
            {command.ended == null && (
              <button type="button" className="choice" aria-label={f.stopCommand(command.command)} onClick={() => stop(command.id)}>
                {f.stop}
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
