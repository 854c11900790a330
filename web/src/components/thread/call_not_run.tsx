import { useRunMessages } from '../../i18n/runs';
import type { NotRunLine } from '../../state/session_state';
import { StaticRow, type RowProps } from './row';
import { refusedGist, ToolName } from './tool_call';

/** A call that was returned to the model: which one, and why. */
export function CallNotRun({ line, here }: RowProps & { line: NotRunLine }) {
  const runs = useRunMessages();
  return (
    <StaticRow glyph="⊘" tone="text-warn" here={here}>
      <p className="truncate">
        <span className="text-warn">{runs?.notRun}</span> <ToolName name={line.tool} title={line.title} />
        <span className="isolate-text ml-1.5 text-dim">{refusedGist(line)}</span>
      </p>
      <p className="text-[13px] text-dim">{runs?.whyNotRun(line.reason)}</p>
    </StaticRow>
  );
}
