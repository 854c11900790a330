/** How a file is previewed, by its media type and its name. Its bytes are not trusted. */
import { extensionOf } from './file_name';

export type PreviewKind = 'image' | 'svg' | 'html' | 'pdf' | 'markdown' | 'table' | 'text' | 'none';

const MEDIA_TYPES: Record<string, PreviewKind> = {
  'image/svg+xml': 'svg',
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'application/pdf': 'pdf',
  'text/markdown': 'markdown',
  'text/csv': 'table',
  'text/tab-separated-values': 'table',
};
const PICTURE = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;
const TEXT = /^(text\/|application\/(json|jsonl|yaml|x-yaml|toml|xml|sql|x-sh|javascript|x-ipynb\+json)$)/;
const EXTENSIONS: Record<string, PreviewKind> = {
  svg: 'svg',
  html: 'html',
  htm: 'html',
  pdf: 'pdf',
  md: 'markdown',
  markdown: 'markdown',
  csv: 'table',
  tsv: 'table',
};
const TEXT_EXTENSIONS =
  /^(txt|log|rst|json|jsonl|ya?ml|toml|ini|cfg|conf|xml|sql|py|m?[jt]sx?|css|sh|bat|ps1|c|cc|cpp|h|hpp|cs|go|rs|rb|java|kt|swift|php|pl|lua|r|scala|tex|diff|patch|vue|proto)$/;

/** Return how a file is shown. A name decides only if the media type says nothing. */
export function previewKind(name: string, mediaType: string): PreviewKind {
  const type = mediaType.toLowerCase();
  const known = MEDIA_TYPES[type];
  if (known !== undefined) return known;
  if (PICTURE.test(type)) return 'image';
  const isUnknown = type === '' || type === 'application/octet-stream' || type === 'text/plain';
  const extension = extensionOf(name);
  if (isUnknown && EXTENSIONS[extension] !== undefined) return EXTENSIONS[extension];
  return TEXT.test(type) || (isUnknown && TEXT_EXTENSIONS.test(extension)) ? 'text' : 'none';
}
