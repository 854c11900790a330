/** Marks around texts of others, which tell models how to treat them. */

const BEGIN = /^\[[0-9a-f]{16}: what follows came from .*\]\n/gm;
const END = /\n\[[0-9a-f]{16}: end\]$/gm;

/** Return a text without the marks, as people read it. */
export function withoutMarks(text: string): string {
  return text.replace(BEGIN, '').replace(END, '');
}
