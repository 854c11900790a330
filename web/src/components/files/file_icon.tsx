import { Archive, Braces, File, FileText, Image, Music, Table } from 'lucide-react';
import { extensionOf } from '../../lib/file_name';
import { previewKind } from '../../lib/file_kind';

const ICONS = {
  image: Image,
  svg: Image,
  html: Braces,
  pdf: FileText,
  markdown: FileText,
  table: Table,
  text: FileText,
  none: File,
};
const EXTENSIONS: Record<string, typeof File> = {
  zip: Archive, gz: Archive, tar: Archive, tgz: Archive, '7z': Archive, rar: Archive, xz: Archive, zst: Archive, bz2: Archive,
  xlsx: Table, xls: Table, ods: Table, parquet: Table,
  docx: FileText, doc: FileText, odt: FileText, pptx: FileText, ppt: FileText, odp: FileText, epub: FileText, rtf: FileText,
  json: Braces, jsonl: Braces, yaml: Braces, yml: Braces, toml: Braces, xml: Braces,
  py: Braces, js: Braces, ts: Braces, tsx: Braces, css: Braces, sh: Braces, sql: Braces, go: Braces, rs: Braces,
};

/** The icon of a kind of file. */
export function FileIcon({ name, mediaType, size = 16 }: { name: string; mediaType: string; size?: number }) {
  const kind = previewKind(name, mediaType);
  const byName = kind === 'none' || kind === 'text' ? EXTENSIONS[extensionOf(name)] : undefined;
  const Icon = byName ?? (/^(audio|video)\//.test(mediaType) ? Music : ICONS[kind]);
  return <Icon size={size} strokeWidth={size > 24 ? 1.25 : 2} aria-hidden="true" className="flex-none text-dim" />;
}
