import { Component, type ReactNode } from 'react';
import { useMessages } from '../../i18n/catalog';

interface Props {
  children: ReactNode;
  /** When this changes, the part is tried again. */
  part: string;
  /** How much room the notice takes: that of its content, of the main column, or of the window. */
  room?: 'content' | 'column' | 'window';
}

/** A part of the page that cannot be rendered is replaced by a notice; the other parts stay. */
export class ErrorBoundary extends Component<Props, { hasFailed: boolean }> {
  static getDerivedStateFromError = () => ({ hasFailed: true });

  override state = { hasFailed: false };

  override componentDidUpdate(before: Props): void {
    if (before.part !== this.props.part && this.state.hasFailed) this.retry();
  }

  override render(): ReactNode {
    if (!this.state.hasFailed) return this.props.children;
    return <Notice room={this.props.room ?? 'content'} onRetry={this.retry} />;
  }

  private readonly retry = () => this.setState({ hasFailed: false });
}

const ROOMS = { content: 'flex-none p-3', column: 'flex-1 p-6', window: 'h-full p-6' };

function Notice({ room, onRetry }: { room: keyof typeof ROOMS; onRetry: () => void }) {
  const t = useMessages();
  return (
    <div role="alert" className={`flex flex-col items-center justify-center gap-3 text-center ${ROOMS[room]}`}>
      <p className="text-dim">{room === 'window' ? t.pageFailed : t.partFailed}</p>
      <div className="flex flex-wrap justify-center gap-2">
        <button type="button" className="choice" onClick={onRetry}>
          {t.tryAgain}
        </button>
        <button type="button" className="choice" onClick={() => location.reload()}>
          {t.reloadPage}
        </button>
      </div>
    </div>
  );
}
