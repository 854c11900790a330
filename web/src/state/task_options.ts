/** What was chosen for the next tasks of a session, stored in the browser. */
import { create } from 'zustand';
import type { MeView, Mode, SessionView } from '../api/client';
import { storage, storedObject } from './preferences';

/** From the narrowest to the widest. */
export const MODES: readonly Mode[] = ['plan', 'deny', 'ask', 'edit', 'run', 'all'];

/** "" is what the session used last, or what the gateway uses by default. */
export interface TaskOptions {
  model: string;
  profile: string;
  workspace: string;
  network: string;
  mode: Mode | '';
  /** Whether plans need approval. */
  review: 'on' | 'off' | '';
}

export const DEFAULTS: TaskOptions = { model: '', profile: '', workspace: '', network: '', mode: '', review: '' };

/** Event that opens the options, to choose another model. */
export const CHOOSE_MODEL_EVENT = 'larkspur.choose-model';

const useStored = create<Record<string, TaskOptions>>(() => ({}));
const key = (session: string) => `larkspur.options.${session}`;

/** Return the stored options. What this version does not know has its default. */
function read(session: string): TaskOptions {
  const { mode = '', review = '', ...texts } = storedObject(key(session));
  const known = Object.entries(texts).filter(([name, value]) => name in DEFAULTS && typeof value === 'string');
  return {
    ...DEFAULTS,
    ...Object.fromEntries(known),
    mode: MODES.find((each) => each === mode) ?? '',
    review: review === 'on' || review === 'off' ? review : '',
  };
}

export function taskOptions(session: string): TaskOptions {
  return useStored.getState()[session] ?? read(session);
}

export function useTaskOptions(session: string): TaskOptions {
  const stored = useStored((all) => all[session]);
  return stored ?? read(session);
}

export function setTaskOptions(session: string, change: Partial<TaskOptions>): void {
  const options = { ...taskOptions(session), ...change };
  useStored.setState({ [session]: options });
  const isDefault = Object.values(options).every((value) => value === '');
  storage.write(key(session), isDefault ? null : JSON.stringify(options));
}

/** What the newest task of a session used. */
type Used = Pick<SessionView, 'permission_mode' | 'plan_review'> | undefined;
type Me = Pick<MeView, 'permission_mode' | 'roles' | 'isolated'> | undefined;

/** Return the modes that a person can choose. */
export function offeredModes(me: Me): Mode[] {
  const isOwner = me?.roles.includes('owner') ?? false;
  const offered = MODES.filter((mode) => mode !== 'deny' && (mode !== 'run' || me?.isolated === true));
  return isOwner ? offered : offered.filter((mode) => mode !== 'edit' && mode !== 'all');
}

/** Return the mode of the next task: chosen here, of the newest task, or the default one. */
export function modeOf(options: TaskOptions, used: Used, me: Me): Mode {
  const chosen = options.mode || used?.permission_mode;
  // chosen in a terminal: what is not offered here must not widen
  if (chosen === 'deny') return chosen;
  return chosen && offeredModes(me).includes(chosen) ? chosen : (me?.permission_mode ?? 'ask');
}

/** Whether more runs without a question than by default. */
export function isWider(mode: Mode, me: Me): boolean {
  return me !== undefined && MODES.indexOf(mode) > MODES.indexOf(me.permission_mode);
}

export function reviewsPlans(options: TaskOptions, used: Used): boolean {
  return options.review === '' ? used?.plan_review === 'always' : options.review === 'on';
}

/** Return the fields of a new task. The default mode is not named: a profile may narrow it. */
export function taskFields(options: TaskOptions, used: Used, me: Me) {
  const { model, profile, workspace, network } = options;
  const mode = modeOf(options, used, me);
  return {
    ...(profile !== '' && { profile }),
    ...(reviewsPlans(options, used) && { plan_review: 'always' as const }),
    options: {
      ...(mode !== (me?.permission_mode ?? 'ask') && { permission_mode: mode }),
      ...(model !== '' && { model }),
      ...(workspace !== '' && { workspace }),
      ...(network !== '' && { network }),
      ...timeZone(),
    },
  };
}

/** The zone of this browser, so that the agent's today is that of the person; {} if it is unknown. */
function timeZone(): { time_zone?: string } {
  const name = new Intl.DateTimeFormat().resolvedOptions().timeZone as string | undefined;
  return name === undefined || name === 'Etc/Unknown' ? {} : { time_zone: name };
}
