import { describe, expect, it } from 'vitest';
import type { SessionListItem, SessionsPage } from '../../src/api/client';
import { groupSessions } from '../../src/components/sessions/groups';
import { mergeFirst } from '../../src/state/sessions';

function row(id: string, updated: string, pinned = false): SessionListItem {
  return {
    session_id: id, title: id, channel: 'web', created: updated, updated, pinned, archived: false,
    unread: false, one_shot: false, workspace: '',
  forked_from: '',
  permission_mode: null,
  plan_review: 'off', status: null, stop_reason: null, calls_not_run: 0, tasks: 0, found: '',
  };
}

const at = (day: number, hour: number) => new Date(2026, 10, day, hour).toISOString();
const ids = (page: SessionsPage) => page.sessions.map((one) => one.session_id).join('');
const [p, d, c, b, a] = [row('p', '1', true), row('d', '5'), row('c', '4'), row('b', '3'), row('a', '2')];

describe('the first page of a list that was read again', () => {
  const known = { sessions: [p, c, b, a], next: 'a' };

  it('moves the others down', () => {
    expect(ids(mergeFirst(known, { sessions: [p, d], next: 'd' }))).toBe('pdcba');
    expect(mergeFirst(known, { sessions: [p, d], next: 'd' }).next).toBe('a');
  });

  it('drops what should be on it', () => {
    expect(ids(mergeFirst(known, { sessions: [p, b], next: 'b' }))).toBe('pba');
    expect(ids(mergeFirst(known, { sessions: [p, c], next: null }))).toBe('pc');
  });

  it('is all there is without older ones', () => {
    expect(mergeFirst({ sessions: [p], next: 'p' }, { sessions: [p, c], next: 'c' }).next).toBe('c');
  });
});

it('groups by the days of the person', () => {
  const now = new Date(2026, 10, 23, 0, 30);
  const rows = [row('p', at(1, 1), true), row('a', at(23, 0)), row('b', at(22, 23)), row('c', at(16, 0)), row('d', at(15, 23))];
  expect(groupSessions(rows, now).map((one) => one.name)).toEqual(['pinned', 'today', 'yesterday', 'week', 'older']);
});
