import { api } from '../../api/client';
import { useSettingsMessages } from '../../i18n/settings';
import { formatCount } from '../../lib/format';
import { Loaded } from './loaded';
import { Table } from './table';

/** The models, with what the settings say about them. */
export function Models() {
  const s = useSettingsMessages();
  return (
    <>
      <p className="mb-3 text-dim">{s.modelsLead}</p>
      <Loaded name="models" load={api.models}>
        {(models) => (
          <Table
            label={s.sections.models}
            head={[s.model, s.contextWindow, s.state]}
            rows={models.models
              .toSorted((one, other) => Number(other.available) - Number(one.available))
              .map((model) => ({
                key: model.id,
                cells: [
                  model.id,
                  model.context_window === null ? '' : formatCount(model.context_window),
                  [model.available ? s.available : s.unavailable, ...(model.id === models.default ? [s.byDefault] : [])].join(' · '),
                ],
              }))}
          />
        )}
      </Loaded>
    </>
  );
}
