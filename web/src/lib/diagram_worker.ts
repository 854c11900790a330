/** Draws Mermaid diagrams as SVG, in a worker that can be ended. */
// oxlint-disable-next-line import/no-unassigned-import -- it must run first
import './diagram_worker_globals';
import { renderMermaidSVG } from 'beautiful-mermaid';
import type { DiagramRequest } from './diagram';

/** Images load nothing, but nothing should even try. */
const IMPORT = /@import[^;]*;/g;

onmessage = ({ data }: MessageEvent<DiagramRequest>) => {
  let svg: string | null = null;
  try {
    svg = renderMermaidSVG(data.code, { ...data.colours, transparent: true, padding: 12, font: 'system-ui' }).replace(IMPORT, '');
  } catch {
    // not a diagram, or of a kind that is not supported
  }
  postMessage(svg);
};
