import type { ReactNode } from 'react';

/** A table that scrolls if it is wider than the page. Numbers are the columns after the first. */
export function Table(props: { label: string; head: readonly string[]; rows: ReadonlyArray<{ key: string; cells: readonly ReactNode[] }> }) {
  return (
    <div role="region" aria-label={props.label} tabIndex={0} className="mb-4 overflow-x-auto rounded-lg border border-line">
      <table className="w-full text-left text-[13px]">
        <thead className="text-dim">
          <tr>
            {props.head.map((name) => (
              <th key={name} scope="col" className="px-3 py-1.5 font-normal whitespace-nowrap">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map(({ key, cells }) => (
            <tr key={key} className="border-t border-line">
              {cells.map((cell, at) => (
                // oxlint-disable-next-line react/no-array-index-key -- a cell is its column
                <td key={at} className="px-3 py-1.5 tabular-nums">
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
