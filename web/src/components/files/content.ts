/** The content of stored files, read once while it is shown. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useCallback } from 'react';
import { readContent, readPage, type StoredFile } from '../../api/files';

const KEPT_MS = 60_000;

/** Read the content of a file, or its first bytes. */
export function useContent(file: StoredFile, maxBytes: number, enabled = true) {
  return useQuery({
    queryKey: ['content', file.path, maxBytes],
    queryFn: () => readContent(file, maxBytes),
    enabled,
    staleTime: Infinity,
    gcTime: KEPT_MS,
  });
}

/** Read a page of a PDF; the one before it is shown until it has arrived. */
export function usePage(file: StoredFile, page: number) {
  return useQuery({
    queryKey: ['page', file.path, page],
    queryFn: () => readPage(file, page),
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: Infinity,
    gcTime: KEPT_MS,
  });
}

/** Return a ref that gives an image or a link the address of a content, which is revoked afterwards. */
export function useContentRef(content: Blob | undefined, mediaType: string) {
  return useCallback(
    (element: HTMLImageElement | HTMLAnchorElement | null) => {
      if (content === undefined || element === null) return undefined;
      const url = URL.createObjectURL(new Blob([content], { type: mediaType }));
      if (element instanceof HTMLImageElement) element.src = url;
      else element.href = url;
      return () => URL.revokeObjectURL(url);
    },
    [content, mediaType],
  );
}
