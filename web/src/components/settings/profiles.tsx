import { api } from '../../api/client';
import type { ProfileView } from '../../api/types.gen';
import { useSettingsMessages } from '../../i18n/settings';
import { Loaded } from './loaded';

/** The profiles, each with what it says and allows, and those that cannot be used. */
export function Profiles() {
  const s = useSettingsMessages();
  return (
    <>
      <p className="mb-3 text-dim">{s.profilesLead}</p>
      <Loaded name="profiles" load={api.profiles}>
        {({ profiles, problems, warnings, default: usual }) => (
          <>
            {problems.map(({ name, problem }) => (
              <p key={name} role="alert" className="mb-2 text-bad">
                {problem}
              </p>
            ))}
            {warnings.map(({ name, problem }) => (
              <p key={name} className="mb-2 text-warn">
                {problem}
              </p>
            ))}
            {profiles.map((profile) => (
              <details key={profile.name} className="mb-2 rounded-lg border border-line px-3 py-2">
                <summary className="cursor-pointer">
                  <span className="font-semibold">{profile.name}</span>
                  {profile.name === usual && <span className="text-dim">{` · ${s.usual}`}</span>}
                  <span className="text-dim">{` ${profile.description}`}</span>
                </summary>
                <Facts profile={profile} />
              </details>
            ))}
          </>
        )}
      </Loaded>
    </>
  );
}

/** What a profile sets, under the names of the keys in its file. */
function Facts({ profile }: { profile: ProfileView }) {
  const { name: _name, description: _description, ...values } = profile;
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== '' && String(value) !== '');
  return (
    <dl className="mt-2 text-[13px]">
      {given.map(([key, value]) => (
        <div key={key} className="mb-1">
          <dt className="font-mono text-dim">{key}</dt>
          <dd className="break-words whitespace-pre-wrap">{Array.isArray(value) ? value.join(', ') : String(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
