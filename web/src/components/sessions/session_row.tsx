import { useQuery } from '@tanstack/react-query';
import { Ellipsis, MailOpen, MessagesSquare, Package, PackageOpen, Pencil, Pin, PinOff, ShieldAlert, SquareTerminal, Trash2 } from 'lucide-react';
import { useState, type KeyboardEvent, type ReactNode } from 'react';
import { Link } from 'wouter';
import { api, type SessionChanges, type SessionListItem } from '../../api/client';
import { useMessages } from '../../i18n/catalog';
import { useSessionMessages } from '../../i18n/sessions';
import { isWider, modeOf, useTaskOptions } from '../../state/task_options';
import { StatusIcon } from '../thread/status_icon';

const CHANNEL_ICONS = { cli: SquareTerminal, lark: MessagesSquare };

/** A session with its marks; its actions open below it. */
export function SessionRow(props: {
  row: SessionListItem;
  here: boolean;
  /** What was searched, "" for nothing. */
  found: string;
  /** null unless several sessions are being selected. */
  selected: boolean | null;
  onSelect: () => void;
  onNavigate: () => void;
  onChange: (changes: SessionChanges) => void;
  onRemove: () => void;
}) {
  const { row, here, selected } = props;
  const t = useMessages();
  const s = useSessionMessages();
  const [open, setOpen] = useState<'none' | 'actions' | 'rename' | 'delete'>('none');
  const title = row.title || t.untitled;
  const isUnread = row.unread && !here;
  const { data: me } = useQuery({ queryKey: ['me'], queryFn: api.me });
  const mode = modeOf(useTaskOptions(row.session_id), row, me);
  const ChannelIcon = CHANNEL_ICONS[row.channel as keyof typeof CHANNEL_ICONS];
  const press = (event: KeyboardEvent) => {
    if (event.key === 'F2') setOpen('rename');
    else if (event.key === 'Delete') setOpen('delete');
    else if (event.key === 'Escape' && open !== 'none') setOpen('none');
    else if (event.key === 'ArrowDown') moveFocus(event.currentTarget, 1);
    else if (event.key === 'ArrowUp') moveFocus(event.currentTarget, -1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const act = (changes: SessionChanges) => {
    setOpen('none');
    props.onChange(changes);
  };
  if (open === 'rename') {
    return (
      <li>
        <RenameField title={row.title} label={s.rename} onEnd={(changed) => (changed === null ? setOpen('none') : act({ title: changed }))} />
      </li>
    );
  }
  return (
    <li>
      <div className={`group flex min-h-8 items-center gap-1 rounded-lg pr-1 pl-1 hover:bg-hover ${here ? 'bg-hover font-medium' : ''}`}>
        {selected !== null && <input type="checkbox" aria-label={title} checked={selected} onChange={props.onSelect} className="ml-1 flex-none" />}
        <Link
          href={`/sessions/${row.session_id}`}
          onClick={props.onNavigate}
          onKeyDown={press}
          aria-current={here ? 'page' : undefined}
          title={title}
          className="flex min-w-0 flex-1 items-center gap-1 py-1"
        >
          {row.status === null ? <span className="glyph" /> : <StatusIcon run={{ status: row.status, reason: row.stop_reason, notRun: row.calls_not_run }} isLabelled />}
          <span className="min-w-0 flex-1">
            <span className={`block truncate ${isUnread ? 'font-semibold' : ''}`}>{title}</span>
            {row.found !== '' && row.found !== row.title && <Found text={row.found} wanted={props.found} />}
          </span>
          {isWider(mode, me) && (
            <span title={t.modes[mode]} className="flex-none text-warn">
              <ShieldAlert size={13} role="img" aria-label={`${t.mode}: ${t.modes[mode]}`} />
            </span>
          )}
          {ChannelIcon !== undefined && <ChannelIcon size={13} role="img" aria-label={s.channels[row.channel]} className="flex-none text-dim" />}
          {isUnread && (
            <span className="size-2 flex-none rounded-full bg-accent">
              <span className="sr-only">{s.unread}</span>
            </span>
          )}
        </Link>
        <button
          type="button"
          aria-label={s.actions(title)}
          aria-expanded={open !== 'none'}
          onClick={() => setOpen(open === 'none' ? 'actions' : 'none')}
          className="flex size-6 flex-none items-center justify-center rounded-md text-dim opacity-0 group-hover:opacity-100 hover:text-ink focus-visible:opacity-100 aria-expanded:opacity-100 max-[719px]:opacity-100"
        >
          <Ellipsis size={15} aria-hidden="true" />
        </button>
      </div>
      {open === 'actions' && (
        <div className="flex justify-end gap-0.5 py-0.5 pr-1">
          <Action label={row.pinned ? s.unpin : s.pin} onClick={() => act({ pinned: !row.pinned })}>
            {row.pinned ? <PinOff size={14} aria-hidden="true" /> : <Pin size={14} aria-hidden="true" />}
          </Action>
          <Action label={s.rename} onClick={() => setOpen('rename')}>
            <Pencil size={14} aria-hidden="true" />
          </Action>
          <Action label={s.markUnread} onClick={() => act({ read: false })}>
            <MailOpen size={14} aria-hidden="true" />
          </Action>
          <Action label={row.archived ? s.restore : s.archive} onClick={() => act({ archived: !row.archived })}>
            {row.archived ? <PackageOpen size={14} aria-hidden="true" /> : <Package size={14} aria-hidden="true" />}
          </Action>
          <Action label={s.delete} onClick={() => setOpen('delete')}>
            <Trash2 size={14} aria-hidden="true" />
          </Action>
        </div>
      )}
      {open === 'delete' && (
        <div className="flex items-center justify-end gap-1 py-0.5 pr-1 text-[13px]" role="group" aria-label={s.delete}>
          <button
            type="button"
            // the person asked for this question
            // oxlint-disable-next-line jsx-a11y/no-autofocus
            autoFocus
            onKeyDown={press}
            onClick={() => {
              setOpen('none');
              props.onRemove();
            }}
            className="rounded-md px-2 py-1 text-bad hover:bg-hover"
          >
            {s.confirm(1)}
          </button>
          <button type="button" onClick={() => setOpen('none')} className="rounded-md px-2 py-1 hover:bg-hover">
            {s.cancel}
          </button>
        </div>
      )}
    </li>
  );
}

/** Move the focus to the next or the previous session. */
function moveFocus(from: Element, step: number): void {
  const links = [...(from.closest('nav')?.querySelectorAll('a') ?? [])];
  links[links.findIndex((one) => one === from) + step]?.focus();
}

function Action(props: { label: string; onClick: () => void; children: ReactNode }) {
  return (
    <button type="button" className="bar-button h-7! w-7!" title={props.label} aria-label={props.label} onClick={props.onClick}>
      {props.children}
    </button>
  );
}

/** The title as a field: Enter keeps it, Esc and leaving the field do not. */
function RenameField(props: { title: string; label: string; onEnd: (title: string | null) => void }) {
  const [title, setTitle] = useState(props.title);
  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Enter') props.onEnd(title.trim() === '' ? null : title);
    else if (event.key === 'Escape') props.onEnd(null);
    else return;
    event.stopPropagation();
  };
  return (
    <input
      aria-label={props.label}
      value={title}
      maxLength={200}
      // the person asked for this field
      // oxlint-disable-next-line jsx-a11y/no-autofocus
      autoFocus
      onFocus={(event) => event.target.select()}
      onChange={(event) => setTitle(event.target.value)}
      onKeyDown={press}
      onBlur={() => props.onEnd(null)}
      className="h-8 w-full rounded-lg border border-accent bg-bg px-2"
    />
  );
}

/** The text around what a search found. */
function Found({ text, wanted }: { text: string; wanted: string }) {
  const at = text.toLowerCase().indexOf(wanted.toLowerCase());
  return (
    <span className="line-clamp-2 text-xs font-normal break-words text-dim">
      {at < 0 ? (
        text
      ) : (
        <>
          {text.slice(0, at)}
          <mark className="bg-transparent font-semibold text-ink">{text.slice(at, at + wanted.length)}</mark>
          {text.slice(at + wanted.length)}
        </>
      )}
    </span>
  );
}
