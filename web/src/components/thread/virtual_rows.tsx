import { useLayoutEffect, type ReactNode, type Ref, type RefObject } from 'react';
import { Virtualizer, type VirtualizerHandle } from 'virtua';

/** Rows of which only the visible ones are in the document. */
export function VirtualRows({ list, view, onMount, children }: {
  list: Ref<VirtualizerHandle>;
  view: RefObject<HTMLElement | null>;
  onMount: () => void;
  children: ReactNode;
}) {
  useLayoutEffect(onMount, [onMount]);
  return (
    <Virtualizer ref={list} scrollRef={view} startMargin={16}>
      {children}
    </Virtualizer>
  );
}
