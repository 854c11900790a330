import { Component, type ReactNode } from 'react';
import { useMessages } from '../../i18n/catalog';

interface Props {
  children: ReactNode;
  /** When this changes, the part is tried again. */
  part: string;
  /** The whole page: the notice fills the window. */
  whole?: boolean;
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
    return <Notice whole={this.props.whole === true} onRetry={this.retry} />;
  }

  private readonly retry = () => this.setState({ hasFailed: false });
}

function Notice({ whole, onRetry }: { whole: boolean; onRetry: () => void }) {
  const t = useMessages();
  return (
    <div role="alert" className={`flex flex-1 flex-col items-center justify-center gap-3 p-6 text-center ${whole ? 'h-full' : ''}`}>
      <p className="text-dim">{whole ? t.pageFailed : t.partFailed}</p>
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
