/** Documents for frames without scripts and origin. */

const NOTHING = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'">`;
const PRESENTATION =
  /^(fill|stroke|opacity|color|font|text|clip|mask|display|visibility|dominant|alignment|letter|paint|shape|stop|marker|baseline)/;

/** Return HTML that loads nothing, as `srcdoc` of a sandboxed frame. */
export function htmlDocument(html: string): string {
  return `<!DOCTYPE html>${NOTHING}${html}`;
}

/**
 * Return a picture as `srcdoc`. The policy of the page forbids inline styles in its frames, too, so
 * that those of the picture become attributes.
 */
export function svgDocument(svg: string): string {
  const root = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  for (const element of root.querySelectorAll('[style]')) {
    for (const rule of (element.getAttribute('style') ?? '').split(';')) {
      const cut = rule.indexOf(':');
      const name = rule.slice(0, Math.max(0, cut)).trim();
      if (PRESENTATION.test(name)) element.setAttribute(name, rule.slice(cut + 1).trim());
    }
  }
  return `<!DOCTYPE html>${NOTHING}${root.outerHTML}`;
}
