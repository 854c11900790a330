import { useRef, useState } from 'react';
import { useShortcuts } from '../../lib/keyboard';
import { useDecisionMessages } from '../../i18n/decision';
import { Choices, Field, Key, type DecisionProps } from './choices';

/**
 * The answers to a question, and to a run that cannot continue: y retries it, n gives it up.
 * Keys: 1–9 choose, e or Enter write, n decline.
 */
export function ClarifyChoices({ question, active, disabled, answer }: DecisionProps) {
  const { options, multiple } = question;
  const d = useDecisionMessages();
  const [chosen, setChosen] = useState<readonly number[]>([]);
  const [text, setText] = useState('');
  const box = useRef<HTMLDivElement>(null);
  const choose = (number: number) => () => {
    if (!multiple) {
      answer({ decision: 'text', choices: [number] });
      return;
    }
    setChosen((now) => (now.includes(number) ? now.filter((one) => one !== number) : [...now, number].toSorted((a, b) => a - b)));
  };
  const write = () => box.current?.querySelector('textarea')?.focus();
  const ready = text.trim() !== '' || chosen.length > 0;
  const send = () => {
    if (!ready || disabled) return;
    answer({ decision: 'text', text, choices: [...chosen] });
  };
  useShortcuts(active && !disabled, {
    ...Object.fromEntries(options.slice(0, 9).map((_, at) => [`${at + 1}`, choose(at + 1)])),
    e: write,
    Enter: ready ? send : write,
  });
  const labels = d.choose;
  const isRecovery = question.kind === 'recovery';
  return (
    <div ref={box} className="flex flex-col gap-2">
      {options.length > 0 && (
        <ol className="-mx-1 flex max-h-[30dvh] flex-col gap-1 overflow-y-auto px-1 py-0.5">
          {options.map((option, at) => {
            const on = chosen.includes(at + 1);
            return (
              // oxlint-disable-next-line react/no-array-index-key -- an option is its number
              <li key={at}>
                <button
                  type="button"
                  role={multiple ? 'checkbox' : undefined}
                  aria-checked={multiple ? on : undefined}
                  disabled={disabled}
                  onClick={choose(at + 1)}
                  className={`flex w-full items-baseline gap-2.5 rounded-lg border px-3 py-1.5 text-left enabled:hover:bg-hover ${on ? 'border-accent' : 'border-line'}`}
                >
                  {multiple && (
                    <span aria-hidden="true" className={`font-mono text-base leading-none ${on ? 'text-accent' : 'text-dim'}`}>
                      {on ? '☑' : '☐'}
                    </span>
                  )}
                  {at < 9 && <Key>{at + 1}</Key>}
                  <span className="isolate-text min-w-0 break-words">{option}</span>
                </button>
              </li>
            );
          })}
        </ol>
      )}
      <Field
        hidesLabel
        label={d.answer}
        hint={options.length > 0 ? d.answerToo : isRecovery ? d.feedbackHint : d.answerHint}
        value={text}
        onChange={setText}
        onSend={send}
        onCancel={() => undefined}
      />
      <div className="flex flex-wrap gap-1.5">
        <button type="button" disabled={disabled || !ready} onClick={send} className="choice choice-primary">
          <Key>↵</Key>
          {labels.send}
        </button>
        <Choices
          active={active}
          disabled={disabled}
          choices={[
            ...(options.length > 0 ? [] : [{ key: 'y', label: isRecovery ? labels.retry : labels.goOn, act: () => answer({ decision: 'approve' }) }]),
            { key: 'n', label: isRecovery ? labels.giveUp : labels.decline, act: () => answer({ decision: 'reject' }) },
          ]}
        />
      </div>
    </div>
  );
}
