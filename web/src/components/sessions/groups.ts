/** Groups of sessions by age. */
import type { SessionListItem } from '../../api/client';

export type GroupName = 'pinned' | 'today' | 'yesterday' | 'week' | 'older';

const DAYS_OF_WEEK = 7;

/** Return the groups that have sessions, in the order of the list. */
export function groupSessions(rows: readonly SessionListItem[], now: Date): { name: GroupName; rows: SessionListItem[] }[] {
  const groups = new Map<GroupName, SessionListItem[]>();
  for (const row of rows) {
    const name = row.pinned ? 'pinned' : ageOf(new Date(row.updated), now);
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups].map(([name, members]) => ({ name, rows: members }));
}

function ageOf(time: Date, now: Date): GroupName {
  const startOf = (days: number) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - days);
  if (time >= startOf(0)) return 'today';
  if (time >= startOf(1)) return 'yesterday';
  return time >= startOf(DAYS_OF_WEEK) ? 'week' : 'older';
}
