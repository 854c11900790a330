import { settingsApi } from '../../api/settings';
import { useOperationMessages } from '../../i18n/operation';
import { formatDuration } from '../../lib/format';
import { Loaded } from '../settings/loaded';
import { Table } from '../settings/table';
import { useMoment } from './use_moment';

/** The gateways and workers of the database, and what each does. */
export function Processes() {
  const s = useOperationMessages();
  const moment = useMoment();
  return (
    <>
      <p className="mb-3 text-dim">{s.processesLead}</p>
      <Loaded name="processes" load={settingsApi.processes}>
        {({ processes }) => (
          <Table
            label={s.processes}
            head={[s.processes, s.since, s.lease, s.activeRuns]}
            rows={processes.map((each) => ({
              key: `${each.host} ${each.pid} ${each.started}`,
              cells: [
                <span key="process" className="isolate-text">
                  {`${s.processRoles[each.role]} ${each.pid} · ${each.host}`}
                  <span className="block text-dim">{`larkspur ${each.version}`}</span>
                  {each.leads.length > 0 && <span className="block">{s.leads(each.leads.join(', '))}</span>}
                </span>,
                moment(each.started),
                <span key="lease" className={each.has_ended ? 'text-bad' : ''}>
                  {each.has_ended ? s.hasEnded : s.renewed(formatDuration(each.lease_age_seconds * 1000))}
                </span>,
                each.runs,
              ],
            }))}
          />
        )}
      </Loaded>
    </>
  );
}
