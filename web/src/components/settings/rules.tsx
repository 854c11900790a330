import { useQueryClient } from '@tanstack/react-query';
import { settingsApi } from '../../api/settings';
import { useSettingsMessages } from '../../i18n/settings';
import { formatDay } from '../../lib/format';
import { usePreferences } from '../../state/preferences';
import { Loaded } from './loaded';
import { Table } from './table';

/** The permission rules that answers added. */
export function Rules() {
  const s = useSettingsMessages();
  const queries = useQueryClient();
  const language = usePreferences((preferences) => preferences.language);
  const remove = async (number: number) => {
    await settingsApi.removeRule(number).catch(() => undefined);
    await queries.invalidateQueries({ queryKey: ['settings', 'rules'] });
  };
  return (
    <>
      <p className="mb-3 text-dim">{s.rulesLead}</p>
      <Loaded name="rules" load={settingsApi.rules}>
        {({ rules }) =>
          rules.length === 0 ? (
            <p>{s.noRules}</p>
          ) : (
            <Table
              label={s.sections.rules}
              head={[s.sections.rules, s.added, s.remove]}
              rows={rules.map((rule) => ({
                key: String(rule.number),
                cells: [
                  <span key="rule">
                    <code className="exact">{rule.rule}</code>
                    <span className="text-dim">{` · ${rule.place.startsWith('lark') ? s.chat : s.everywhere}`}</span>
                  </span>,
                  formatDay(rule.created, language),
                  <button key="remove" type="button" className="choice" aria-label={s.removeRule(rule.rule)} onClick={() => void remove(rule.number)}>
                    {s.remove}
                  </button>,
                ],
              }))}
            />
          )
        }
      </Loaded>
    </>
  );
}
