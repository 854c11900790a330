import { Menu } from 'lucide-react';
import { Suspense } from 'react';
import { Link } from 'wouter';
import { useMessages } from '../../i18n/catalog';
import { useSettingsMessages } from '../../i18n/settings';
import { lazyComponent } from '../../lib/lazy';
import { Appearance } from './appearance';
import { Lark } from './lark';
import { Models } from './models';
import { People } from './people';
import { Profiles } from './profiles';
import { Rules } from './rules';
import { Skills } from './skills';
import { Tools } from './tools';
import { Usage } from './usage';

const DeadLetters = lazyComponent(async () => (await import('../operation/dead_letters')).DeadLetters);
const Processes = lazyComponent(async () => (await import('../operation/processes')).Processes);

const SECTIONS = { appearance: Appearance, models: Models, profiles: Profiles, skills: Skills, tools: Tools, lark: Lark, usage: Usage, rules: Rules, people: People, letters: DeadLetters, processes: Processes };

type Section = keyof typeof SECTIONS;

/** The settings: a section at a time, each with an address of its own. */
export function SettingsPage({ onMenu, section }: { onMenu: () => void; section?: string | undefined }) {
  const t = useMessages();
  const s = useSettingsMessages();
  const shown: Section = section !== undefined && section in SECTIONS ? (section as Section) : 'appearance';
  const Content = SECTIONS[shown];
  return (
    <>
      <header className="flex h-12 flex-none items-center gap-2 border-b border-line px-3">
        <button type="button" className="bar-button min-[720px]:hidden" aria-label={t.menu} onClick={onMenu}>
          <Menu size={18} aria-hidden="true" />
        </button>
        <h1 className="font-semibold">{t.settings}</h1>
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto max-w-[808px] px-6 py-4 max-[719px]:px-4">
          <nav aria-label={t.settings} className="mb-4 flex flex-wrap gap-1">
            {(Object.keys(SECTIONS) as Section[]).map((name) => (
              <Link
                key={name}
                href={`/settings/${name}`}
                aria-current={name === shown ? 'page' : undefined}
                className={`choice ${name === shown ? 'border-accent! text-accent' : ''}`}
              >
                {s.sections[name]}
              </Link>
            ))}
          </nav>
          <div>
            <h2 className="mb-2 text-[17px] font-semibold">
              {s.sections[shown]}
            </h2>
            <Suspense fallback={null}>
              <Content />
            </Suspense>
          </div>
        </div>
      </div>
    </>
  );
}
