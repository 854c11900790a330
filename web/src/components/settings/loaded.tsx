import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { hasStatus } from '../../api/client';
import { useMessages } from '../../i18n/catalog';
import { useSettingsMessages } from '../../i18n/settings';

/** Load a value and show it; while it loads or if that failed, say so. */
export function Loaded<T>(props: { name: string; load: () => Promise<T>; children: (value: T) => ReactNode }) {
  const t = useMessages();
  const s = useSettingsMessages();
  const { data, error } = useQuery({ queryKey: ['settings', props.name], queryFn: props.load });
  if (data !== undefined) return props.children(data);
  if (error === null) return <p role="status" className="text-dim">{t.loading}</p>;
  return <p role="alert" className="text-bad">{hasStatus(error, 0) ? s.failed : error.message}</p>;
}
