import { useLayoutEffect, type ReactNode, type Ref, type RefObject } from 'react';
import { Virtualizer, type VirtualizerHandle } from 'virtua';

/** Rows of which only the visible ones are in the document. */
export function VirtualRows({ list, view, shift, onMount, children }: {
  list: Ref<VirtualizerHandle>;
  view: RefObject<HTMLElement | null>;
  /** Rows were added at the start: keep the distance to the end. */
  shift: boolean;
  onMount: () => void;
  children: ReactNode;
}) {
  useLayoutEffect(onMount, [onMount]);
  return (
    <Virtualizer ref={list} scrollRef={view} shift={shift} startMargin={16}>
      {children}
    </Virtualizer>
  );
}
