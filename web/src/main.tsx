import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app';
import { useConversation } from './conversation';
import { enter } from './entering';
import { fold, settled } from './fold';
import { EMPTY } from './state';
import './style.css';

const queries = new QueryClient({
  defaultOptions: { queries: { retry: false, staleTime: 2_000 } },
});

async function start(): Promise<void> {
  await enter();
  const root = document.getElementById('root');
  if (root === null) return;
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}

// for the console, and for tests that compare what is shown with what is stored
Object.assign(window, { larkspur: { conversation: useConversation, fold, settled, EMPTY } });

void start();
