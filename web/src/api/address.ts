/** Where the page is: below the path of its public address, which the server writes into the document. */

/** Such as `/larkspur`; "" at the root of the host. */
export const BASE = document.documentElement.dataset['path'] ?? '';

/** Return the address of a path of the gateway, such as `/api/me`. */
export function address(path: string): string {
  return BASE + path;
}

/** Return a name of something that the pages of an origin share, for those below the same path. */
export function sharedName(name: string): string {
  return BASE === '' ? name : `${name}@${BASE}`;
}

/** Return where the page belongs if it was opened elsewhere, such as directly at the gateway; else null. */
export function movedAddress({ pathname, search, hash }: Location, base = BASE): string | null {
  const isBelow = pathname === base || pathname.startsWith(`${base}/`);
  return isBelow ? null : `${base}${pathname}${search}${hash}`;
}
