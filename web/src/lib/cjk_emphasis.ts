/**
 * Emphasis beside Chinese, Japanese and Korean signs, which have no blanks around them.
 *
 * CommonMark lets `*` and `~` next to punctuation open or close only beside a blank or another sign,
 * so that `**重点：**请` would stay as it is. Here a Chinese, Japanese or Korean letter or sign on
 * either side of the run is enough. The terminal and Lark follow the same rule
 * (internal/channels/cjk_emphasis.py). Texts without such letters are not affected.
 */
import { Tokenizer, type MarkedExtension } from 'marked';

const CJK =
  '[\\u1100-\\u11ff\\u2e80-\\ua4cf\\ua960-\\ua97f\\uac00-\\ud7ff\\uf900-\\ufaff\\ufe10-\\ufe1f\\ufe30-\\ufe6f\\uff00-\\uffef\\u{1aff0}-\\u{1b16f}\\u{20000}-\\u{3ffff}\\u{e0100}-\\u{e01ef}]';
const SIGN = '[\\p{P}\\p{S}]';

/** Signs that must not decide whether the run beside them opens or closes. */
const BESIDE_RUN = new RegExp(
  [
    ...['\\*', '~'].map((mark) => `(?![*~])${SIGN}(?=${mark}+${CJK})|(?![*~])(?<=${CJK}${mark}+)${SIGN}`),
    `(?=${CJK})${SIGN}(?=[*~])|(?<=[*~])(?=${CJK})${SIGN}`,
  ].join('|'),
  'gu',
);
/** Stars beside tildes, for which marked takes stars as signs, but not the other way around. */
const BESIDE_TILDES = new RegExp(`\\*(?=~+${CJK})|(?<=${CJK}~+)\\*`, 'gu');
const RUN = /^(?:\*+|~+)/;
const ENDS_CJK = new RegExp(`${CJK}$`, 'u');
const BEGINS_CJK = new RegExp(`^${CJK}`, 'u');

/** Open at a run beside such a letter as after a blank; `masked` ends with `text`. */
function opening<T>(tokenize: (this: Tokenizer, text: string, masked: string, before?: string) => T) {
  return function besideCjk(this: Tokenizer, text: string, masked: string, before = ''): T {
    const run = RUN.exec(text)?.[0].length ?? 0;
    const start = masked.length - text.length;
    const isBeside =
      run > 0 && (ENDS_CJK.test(masked.slice(Math.max(0, start - 2), start)) || BEGINS_CJK.test(text.slice(run, run + 2)));
    return tokenize.call(this, text, masked, isBeside ? '' : before);
  };
}

export const cjkEmphasis: MarkedExtension = {
  tokenizer: {
    emStrong: opening(Tokenizer.prototype.emStrong),
    del: opening(function del(text, masked, before) {
      // asked for at every part of a line
      if (!text.startsWith('~')) return undefined;
      return Tokenizer.prototype.del.call(this, text, masked.replace(BESIDE_TILDES, 'x'), before);
    }),
  },
  hooks: {
    // letters take the place of signs where marked looks for the ends of runs
    emStrongMask: (masked) => masked.replace(BESIDE_RUN, (sign) => 'x'.repeat(sign.length)),
  },
};
