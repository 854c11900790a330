/** Mermaid diagrams as pictures, in which no script runs and no link can be followed. */

/** Colours as in CSS. */
export interface DiagramColours {
  fg: string;
  bg: string;
}

export interface DiagramRequest {
  code: string;
  colours: DiagramColours;
}

const MAX_CHARS = 20_000;
const MAX_MS = 10_000;

/** Return the address of a picture of a diagram, null if it cannot be drawn. The caller revokes it. */
export async function drawDiagram(code: string, colours: DiagramColours): Promise<string | null> {
  if (code.length > MAX_CHARS) return null;
  const worker = new Worker(new URL('diagram_worker.ts', import.meta.url), { type: 'module' });
  try {
    const svg = await new Promise<string | null>((resolve) => {
      setTimeout(() => resolve(null), MAX_MS);
      worker.addEventListener('error', () => resolve(null));
      worker.addEventListener('message', ({ data }: MessageEvent<string | null>) => resolve(data));
      worker.postMessage({ code, colours } satisfies DiagramRequest);
    });
    return svg === null ? null : URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  } finally {
    worker.terminate();
  }
}
