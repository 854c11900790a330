/** Names of files as people see them. */

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;

/** Return a name in which characters that are invisible or turn the direction of text are escaped. */
export function displayName(name: string): string {
  return name.replace(INVISIBLE, (one) => `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);
}

/** Return the extension of a name in lower case, "" without one. */
export function extensionOf(name: string): string {
  return /[^./\\]\.([^./\\\s]{1,12})$/.exec(name)?.[1]?.toLowerCase() ?? '';
}
