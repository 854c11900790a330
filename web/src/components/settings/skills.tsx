import { useState } from 'react';
import { settingsApi } from '../../api/settings';
import type { RequestedTool, SkillSummary } from '../../api/types.gen';
import { useSettingsMessages } from '../../i18n/settings';
import { formatSize } from '../../lib/format';
import { Loaded } from './loaded';
import { ReviewDialog } from './review_dialog';

/** The skills, each with its files, and a review of those that need one. */
export function Skills() {
  const s = useSettingsMessages();
  const [reviewed, setReviewed] = useState('');
  return (
    <>
      <p className="mb-3 text-dim">{s.skillsLead}</p>
      <Loaded name="skills" load={settingsApi.skills}>
        {({ skills }) =>
          skills.length === 0 ? (
            <p>{s.noSkills}</p>
          ) : (
            skills.map((skill, at) => (
              // oxlint-disable-next-line react/no-array-index-key -- two skills may have one name
              <details key={`${at} ${skill.name}`} className="mb-2 rounded-lg border border-line px-3 py-2">
                <summary className="isolate-text cursor-pointer">
                  <span className="font-semibold">{skill.name}</span>
                  <span className={skill.state === 'offered' ? 'text-ok' : 'text-warn'}>{` · ${s.states[skill.state]}`}</span>
                  <span className="text-dim">{` ${skill.description}`}</span>
                </summary>
                <Facts skill={skill} />
                {skill.origin !== 'shipped' && skill.state !== 'not usable' && (
                  <button type="button" className="choice mt-2" aria-label={s.reviewOf(skill.name)} onClick={() => setReviewed(skill.name)}>
                    {s.review}
                  </button>
                )}
              </details>
            ))
          )
        }
      </Loaded>
      {reviewed !== '' && <Review name={reviewed} onClose={() => setReviewed('')} />}
    </>
  );
}

function Facts({ skill }: { skill: SkillSummary }) {
  const s = useSettingsMessages();
  return (
    <div className="mt-2 text-[13px]">
      <p className="text-dim">
        {s.origins[skill.origin]} <code>{skill.sha256.slice(0, 12)}</code>
      </p>
      {[skill.problem, ...skill.warnings].map((text) => text && <p key={text} className="isolate-text text-warn">{text}</p>)}
      <Listed title={s.skillFiles} items={skill.files.map((file) => `${file.path} · ${formatSize(file.size)}${file.is_script ? ` · ${s.script}` : ''}`)} />
    </div>
  );
}

/** A title with a list; nothing without items. */
function Listed({ title, items }: { title: string; items: readonly string[] }) {
  return (
    items.length > 0 && (
      <>
        <h3 className="mt-2 text-dim">{title}</h3>
        <ul>
          {items.map((item) => (
            <li key={item} className="exact">{item}</li>
          ))}
        </ul>
      </>
    )
  );
}

/** What a skill asks for, with the rules that a person may grant. */
function Requested({ requested, rules, onChange }: { requested: readonly RequestedTool[]; rules: readonly string[]; onChange: (rules: string[]) => void }) {
  const s = useSettingsMessages();
  return (
    requested.length > 0 && (
      <>
        <h3 className="mt-2 text-dim">{s.asksFor}</h3>
        <ul>
          {requested.map(({ entry, rule, refusal }, at) => (
            // oxlint-disable-next-line react/no-array-index-key -- an entry may be there twice
            <li key={at}>
              {refusal === '' ? (
                <label>
                  <input
                    type="checkbox"
                    checked={rules.includes(rule)}
                    onChange={(event) => onChange([...rules.filter((one) => one !== rule), ...(event.target.checked ? [rule] : [])])}
                  />{' '}
                  <code className="exact">{rule}</code>
                </label>
              ) : (
                <span className="text-dim">
                  <code className="exact">{entry}</code> · {s.refusals[refusal]}
                </span>
              )}
            </li>
          ))}
        </ul>
        <p className="text-dim">{s.grantsNothing}</p>
      </>
    )
  );
}

/** What a person should know of a skill, and the decision about just these files. */
function Review({ name, onClose }: { name: string; onClose: () => void }) {
  const s = useSettingsMessages();
  const [rules, setRules] = useState<readonly string[]>([]);
  return (
    <ReviewDialog
      label={s.reviewOf(name)}
      name={`review ${name}`}
      load={() => settingsApi.review(name)}
      decide={({ skill }, accept) => settingsApi.reviewSkill(name, skill.sha256, accept, accept ? rules : [])}
      onClose={onClose}
    >
      {(report) => (
        <>
          <Listed title={s.scripts} items={report.scripts} />
          <Listed title={s.binary} items={report.binary} />
          <Listed title={s.invisible} items={report.invisible.map((one) => `${one.path}:${one.line}:${one.column} ${one.code}`)} />
          <Listed title={s.lacks} items={report.lacks} />
          <Requested requested={report.requested} rules={rules} onChange={setRules} />
          <h3 className="mt-2 text-dim">SKILL.md</h3>
          <div role="region" aria-label="SKILL.md" tabIndex={0} className="exact max-h-[40vh] overflow-y-auto rounded-lg border border-line p-2">
            {report.text}
          </div>
          {!report.is_complete && <p className="text-warn">{s.cut}</p>}
        </>
      )}
    </ReviewDialog>
  );
}
