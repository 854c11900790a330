/** Formatting of numbers and times. */
import type { Language } from '../state/preferences';

/** Return a duration such as 0.4s, 12s, 1m12s or 2h05m, as `internal/i18n/quantities.py` does. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(milliseconds, 0) / 1000;
  const tenths = Math.floor(seconds * 10 + 0.5);
  if (tenths < 100) return `${(tenths / 10).toFixed(1)}s`;
  const whole = Math.max(Math.floor(seconds), 10);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m${twoDigits(whole % 60)}s`;
  return `${Math.floor(whole / 3600)}h${twoDigits(Math.floor((whole % 3600) / 60))}m`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

/** Return a number in short form: 950, 12.4k, 128k, 3.1M. */
export function formatCount(count: number): string {
  if (count < 1000) return String(count);
  if (count < 999_500) return `${short(count / 1000)}k`;
  return `${short(count / 1_000_000)}M`;
}

/** Return a number with one decimal below 100, if it is not 0. */
function short(value: number): string {
  const tenths = Math.floor(value * 10 + 0.5);
  return tenths < 1000 ? String(tenths / 10) : String(Math.floor(value + 0.5));
}

export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const kibibytes = bytes / 1024;
  return kibibytes < 1023.5 ? `${short(kibibytes)} KB` : `${short(kibibytes / 1024)} MB`;
}

/** Return US dollars with two decimals, below one cent with four. */
export function formatCost(dollars: number): string {
  if (dollars <= 0 || dollars >= 0.01) return `$${dollars.toFixed(2)}`;
  return dollars >= 0.0001 ? `$${dollars.toFixed(4)}` : '<$0.0001';
}

export function formatTime(time: string, language: Language): string {
  const locale = language === 'zh' ? 'zh-CN' : 'en-GB';
  return new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' }).format(
    new Date(time),
  );
}

export function formatDay(time: string, language: Language): string {
  const locale = language === 'zh' ? 'zh-CN' : 'en-GB';
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium' }).format(new Date(time));
}
