/** HTML documents for a frame without scripts and origin. */
import DOMPurify from 'dompurify';

/**
 * What makes a browser resolve or connect to a host, whatever a policy says, is removed with all that
 * is not shown: `<link rel="preconnect">`, frames, refreshes.
 */
const POLICY = { WHOLE_DOCUMENT: true, FORBID_ATTR: ['srcset', 'imagesrcset', 'ping'] };
const ADDRESSES = new Set('action background cite data formaction href longdesc poster src xlink:href'.split(' '));

const purify = DOMPurify(window);
purify.addHook('uponSanitizeAttribute', (_, attribute) => {
  const isInside = /^\s*(?:#|data:image\/)/i.test(attribute.attrValue);
  if (ADDRESSES.has(attribute.attrName) && !isInside) attribute.keepAttr = false;
});

/** Return HTML that shows what a document contains and names no address. */
export function htmlDocument(html: string): string {
  return `<!DOCTYPE html>${purify.sanitize(html, POLICY)}`;
}
