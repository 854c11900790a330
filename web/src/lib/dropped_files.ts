/** Files that are dropped anywhere on the page, or pasted. */
import { useEffect, useState } from 'react';

export interface DroppedFiles {
  files: readonly File[];
  /** The name of a folder among them, which cannot be attached; "" without one. */
  folder: string;
}

/** Keep the browser from leaving the page for a dropped file, also where nothing takes files. */
export function refuseDrops(): void {
  addEventListener('dragover', refuse);
  addEventListener('drop', refuse);
}

function refuse(event: DragEvent): void {
  const data = filesOf(event);
  if (data === null) return;
  event.preventDefault();
  data.dropEffect = 'none';
}

/** Take dropped and pasted files. Return whether files are being dragged over the page. */
export function useFileDrop(onFiles: (dropped: DroppedFiles) => void): boolean {
  const [isOver, setIsOver] = useState(false);
  useEffect(() => {
    const listening = new AbortController();
    const drag = (event: DragEvent) => {
      const data = filesOf(event);
      if (data === null || isDialogOpen()) return;
      data.dropEffect = 'copy';
      const isDropped = event.type === 'drop';
      setIsOver(!isDropped);
      if (isDropped) onFiles(droppedFiles(data));
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setIsOver(false);
    };
    const paste = (event: ClipboardEvent) => {
      const data = event.clipboardData;
      if (!data?.files.length || isDialogOpen()) return;
      // cells and paragraphs of office programs come with a picture of themselves
      if (data.getData('text/plain') && data.getData('text/html')) return;
      event.preventDefault();
      onFiles({ files: [...data.files], folder: '' });
    };
    const { signal } = listening;
    addEventListener('dragover', drag, { signal });
    addEventListener('drop', drag, { signal });
    addEventListener('dragleave', leave, { signal });
    addEventListener('paste', paste, { signal });
    return () => listening.abort();
  }, [onFiles]);
  return isOver;
}

/** Return what is dragged if there are files in it. */
function filesOf(event: DragEvent): DataTransfer | null {
  return event.dataTransfer?.types.includes('Files') ? event.dataTransfer : null;
}

function isDialogOpen(): boolean {
  return document.querySelector('dialog[open]') !== null;
}

function droppedFiles(data: DataTransfer): DroppedFiles {
  const files: File[] = [];
  let folder = '';
  for (const item of data.items) {
    const entry = item.webkitGetAsEntry();
    const file = item.getAsFile();
    if (entry?.isDirectory) folder = entry.name;
    else if (file !== null) files.push(file);
  }
  return { files, folder };
}
