import { describe, expect, it } from 'vitest';
import { DEFAULTS, isWider, modeOf, offeredModes, taskFields } from '../../src/state/task_options';

const owner = { permission_mode: 'run', isolated: true, roles: ['owner'] } as const;
const me = { ...owner, roles: [...owner.roles] };
const used = (mode: Parameters<typeof isWider>[0] | null) => ({ permission_mode: mode, plan_review: 'off' as const });

describe('the mode of the next task', () => {
  it('is the one chosen here, of the newest task, or the default', () => {
    expect(modeOf(DEFAULTS, undefined, me)).toBe('run');
    expect(modeOf(DEFAULTS, used('all'), me)).toBe('all');
    expect(modeOf({ ...DEFAULTS, mode: 'plan' }, used('all'), me)).toBe('plan');
  });

  it('is not widened because the page does not offer it', () => {
    expect(offeredModes(me)).not.toContain('deny');
    expect(modeOf(DEFAULTS, used('deny'), me)).toBe('deny');
    expect(taskFields(DEFAULTS, used('deny'), me).options).toMatchObject({ permission_mode: 'deny' });
  });

  it('is the default for people who may not choose it, and where commands are not isolated', () => {
    expect(modeOf(DEFAULTS, used('all'), { ...me, roles: ['operate'] })).toBe('run');
    expect(modeOf(DEFAULTS, used('run'), { ...me, permission_mode: 'ask', isolated: false })).toBe('ask');
  });

  it('goes with the time zone of the person', () => {
    const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
    expect(taskFields(DEFAULTS, undefined, me).options).toEqual({ time_zone: timeZone });
  });

  it('is marked if it is wider than the default', () => {
    expect(['plan', 'deny', 'ask', 'edit', 'run', 'all'].filter((mode) => isWider(mode as 'all', me))).toEqual(['all']);
  });
});
