import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { BASE, movedAddress } from './api/address';
import { App } from './app';
import { ErrorBoundary } from './components/layout/error_boundary';
import { useSessionStore } from './state/session_store';
import { logInFromAddress } from './api/login';
import { startCatalog } from './i18n/catalog';
import { startRunMessages } from './i18n/runs';
import { refuseDrops } from './lib/dropped_files';
import { preloadComponents } from './lib/lazy';
import { reduceEvents, withoutLive } from './state/event_reducer';
import { EMPTY } from './state/session_state';
import './style.css';

const queries = new QueryClient({
  defaultOptions: { queries: { retry: false, staleTime: 2_000 } },
});

async function start(): Promise<void> {
  const moved = movedAddress(location);
  if (moved !== null) {
    location.replace(moved);
    return;
  }
  await Promise.all([startCatalog(), logInFromAddress()]);
  const root = document.getElementById('root');
  if (root === null) return;
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Router base={BASE}>
          <ErrorBoundary part="page" room="window">
            <App />
          </ErrorBoundary>
        </Router>
      </QueryClientProvider>
    </StrictMode>,
  );
  void startRunMessages();
  preloadComponents();
}

// for debugging, and for tests that compare the shown state with the stored events
Object.assign(window, { larkspur: { sessionStore: useSessionStore, reduceEvents, withoutLive, EMPTY } });

refuseDrops();
void start();
