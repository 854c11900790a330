import type { Language } from '../state/preferences';

/** Return the time until a moment, such as "in 7 days". */
export function formatUntil(time: string, now: number, language: Language): string {
  const seconds = Math.max(0, (Date.parse(time) - now) / 1000);
  const units = [['day', 86_400], ['hour', 3_600], ['minute', 60]] as const;
  const [unit, size] = units.find((one) => seconds >= one[1] * 2) ?? (['minute', 60] as const);
  const locale = language === 'zh' ? 'zh-CN' : 'en-GB';
  return new Intl.RelativeTimeFormat(locale).format(Math.ceil(seconds / size), unit);
}
