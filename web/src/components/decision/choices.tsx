/** What a decision bar is operated with: choices that have a key, and fields for words. */
import { useEffect, useRef, type KeyboardEvent, type ReactNode } from 'react';
import { useShortcuts } from '../../lib/keyboard';
import { useMessages } from '../../i18n/catalog';

export interface Choice {
  key: string;
  label: string;
  act: () => void;
  primary?: boolean;
}

/** Choices in a row; each can be clicked, or made with its key while they are `active`. */
export function Choices(props: { choices: readonly Choice[]; active: boolean; disabled: boolean }) {
  const { choices, active, disabled } = props;
  useShortcuts(active && !disabled, Object.fromEntries(choices.map((one) => [one.key, one.act])));
  return (
    <div className="flex flex-wrap gap-1.5">
      {choices.map((one) => (
        <button
          key={one.key}
          type="button"
          disabled={disabled}
          aria-keyshortcuts={one.key}
          onClick={one.act}
          className={one.primary ? 'choice choice-primary' : 'choice'}
        >
          <Key>{one.key}</Key>
          {one.label}
        </button>
      ))}
    </div>
  );
}

/** The key of a choice, where there are keys. */
export function Key({ children }: { children: ReactNode }) {
  return (
    <kbd aria-hidden="true" className="font-mono text-xs opacity-75 pointer-coarse:hidden">
      {children}
    </kbd>
  );
}

/** A field of the bar. Enter sends, Shift+Enter is a new line, Esc leaves. */
export function Field(props: {
  label: string;
  hint?: string;
  value: string;
  onChange: (text: string) => void;
  onSend: () => void;
  onCancel: () => void;
  focused?: boolean;
  exact?: boolean;
  hidesLabel?: boolean;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  const { focused = false } = props;
  useEffect(() => {
    if (focused) field.current?.focus();
  }, [focused]);
  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (isComposing(event)) return;
    if (event.key === 'Escape') {
      event.stopPropagation();
      field.current?.blur();
      props.onCancel();
    } else if (event.key === 'Enter' && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      props.onSend();
    }
  };
  return (
    <label className="block">
      <span className={props.hidesLabel ? 'sr-only' : 'mb-1 block text-xs text-dim'}>{props.label}</span>
      <textarea
        ref={field}
        rows={1}
        dir={props.exact ? 'ltr' : 'auto'}
        value={props.value}
        placeholder={props.hint}
        onChange={(event) => props.onChange(event.target.value)}
        onKeyDown={press}
        className={`field-sizing-content block max-h-40 min-h-9 w-full resize-none rounded-lg border border-line bg-bg px-3 py-1.5 placeholder:text-dim ${props.exact ? 'exact text-[13px]' : ''}`}
      />
    </label>
  );
}

/** What is done with a field: send it, or go back to the choices. */
export function FieldActions(props: {
  label: string;
  keys?: string;
  disabled: boolean;
  onSend: () => void;
  onCancel: () => void;
}) {
  const t = useMessages();
  return (
    <div className="mt-2 flex flex-wrap gap-1.5">
      <button type="button" disabled={props.disabled} onClick={props.onSend} className="choice choice-primary">
        <Key>{props.keys ?? '↵'}</Key>
        {props.label}
      </button>
      <button type="button" onClick={props.onCancel} className="choice">
        <Key>esc</Key>
        {t.choose.back}
      </button>
    </div>
  );
}

/** Say whether a key belongs to an input method. 229: Safari ends a composition before its key. */
export function isComposing(event: KeyboardEvent): boolean {
  return event.nativeEvent.isComposing || event.keyCode === 229;
}
