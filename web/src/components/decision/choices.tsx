/** The controls of a question: choices with shortcuts, and text fields. */
import { useEffect, useRef, type KeyboardEvent, type ReactNode } from 'react';
import type { AnswerInput } from '../../api/client';
import { useShortcuts } from '../../lib/keyboard';
import { useDecisionMessages } from '../../i18n/decision';
import type { Question } from '../../state/questions';

/** The properties of the choices of every kind of question. */
export interface DecisionProps {
  question: Question;
  /** Keyboard shortcuts answer this question. */
  active: boolean;
  disabled: boolean;
  answer: (input: AnswerInput) => void;
  /** The question is hidden while its plan is edited. */
  onEditing: (isEditing: boolean) => void;
}

export interface Choice {
  key: string;
  label: string;
  act: () => void;
  primary?: boolean;
}

/** Buttons in a row; while `active`, each can also be pressed by its key. */
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

/** The shortcut of a button, hidden on touch screens. */
export function Key({ children }: { children: ReactNode }) {
  return (
    <kbd aria-hidden="true" className="font-mono text-xs opacity-75 pointer-coarse:hidden">
      {children}
    </kbd>
  );
}

/** A text field. Enter sends, Shift+Enter inserts a line break, Esc cancels. */
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

/** The buttons below a text field: send, or go back. */
export function FieldActions(props: {
  label: string;
  keys?: string;
  disabled: boolean;
  onSend: () => void;
  onCancel: () => void;
}) {
  const d = useDecisionMessages();
  return (
    <div className="mt-2 flex flex-wrap gap-1.5">
      <button type="button" disabled={props.disabled} onClick={props.onSend} className="choice choice-primary">
        <Key>{props.keys ?? '↵'}</Key>
        {props.label}
      </button>
      <button type="button" onClick={props.onCancel} className="choice">
        <Key>esc</Key>
        {d.choose.back}
      </button>
    </div>
  );
}

/** Return true if a key belongs to an input method. 229: Safari ends a composition before its key. */
export function isComposing(event: KeyboardEvent): boolean {
  return event.nativeEvent.isComposing || event.keyCode === 229;
}
