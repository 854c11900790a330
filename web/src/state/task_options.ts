/** The model, the profile, the folder and the network of the next tasks of a session, stored in the browser. */
import { create } from 'zustand';
import { storage, usePreferences } from './preferences';

/** "" is what the gateway uses by default. */
export interface TaskOptions {
  model: string;
  profile: string;
  workspace: string;
  network: string;
}

export const DEFAULTS: TaskOptions = { model: '', profile: '', workspace: '', network: '' };

/** Event that opens the options, to choose another model. */
export const CHOOSE_MODEL_EVENT = 'larkspur.choose-model';

const useStored = create<Record<string, TaskOptions>>(() => ({}));
const key = (session: string) => `larkspur.options.${session}`;

function read(session: string): TaskOptions {
  try {
    return { ...DEFAULTS, ...(JSON.parse(storage.read(key(session)) ?? '{}') as Partial<TaskOptions>) };
  } catch {
    return DEFAULTS;
  }
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

/** Return the fields of a new task that these options and the permission mode are. */
export function taskFields({ model, profile, workspace, network }: TaskOptions) {
  const { mode } = usePreferences.getState();
  return {
    ...(profile !== '' && { profile }),
    options: {
      ...(mode !== '' && { permission_mode: mode }),
      ...(model !== '' && { model }),
      ...(workspace !== '' && { workspace }),
      ...(network !== '' && { network }),
    },
  };
}
