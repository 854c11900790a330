/** The texts of the list of sessions, loaded with it. */
import { usePreferences, type Language } from '../state/preferences';

const en = {
  search: 'Search sessions',
  filter: 'Filter sessions',
  channel: 'Channel',
  all: 'All channels',
  channels: { web: 'Web page', cli: 'Terminal', lark: 'Lark', mcp: 'MCP clients' } as Record<string, string>,
  archived: 'Archived sessions',
  oneShots: 'One-shot tasks',
  select: 'Select several',
  groups: { pinned: 'Pinned', today: 'Today', yesterday: 'Yesterday', week: 'Last 7 days', older: 'Older' },
  loading: 'Loading…',
  none: 'No sessions yet.',
  nothing: 'Nothing found.',
  noMatch: 'No session matches the filter.',
  unread: 'unread',
  actions: (title: string) => `Actions for ${title}`,
  rename: 'Rename',
  pin: 'Pin',
  unpin: 'Unpin',
  archive: 'Archive',
  restore: 'Move out of the archive',
  markUnread: 'Mark as unread',
  delete: 'Delete',
  cancel: 'Cancel',
  confirm: (count: number) => (count === 1 ? 'Delete for good?' : `Delete ${count} for good?`),
  selected: (count: number) => `${count} selected`,
};

const zh: typeof en = {
  search: '搜索会话',
  filter: '筛选会话',
  channel: '渠道',
  all: '全部渠道',
  channels: { web: '网页', cli: '终端', lark: '飞书', mcp: 'MCP 客户端' },
  archived: '已归档的会话',
  oneShots: '一次性任务',
  select: '多选',
  groups: { pinned: '已置顶', today: '今天', yesterday: '昨天', week: '最近 7 天', older: '更早' },
  loading: '加载中…',
  none: '暂无会话',
  nothing: '无匹配结果',
  noMatch: '没有符合筛选条件的会话',
  unread: '未读',
  actions: (title) => `“${title}”的操作`,
  rename: '重命名',
  pin: '置顶',
  unpin: '取消置顶',
  archive: '归档',
  restore: '取消归档',
  markUnread: '标为未读',
  delete: '删除',
  cancel: '取消',
  confirm: (count) => (count === 1 ? '永久删除？' : `永久删除 ${count} 个？`),
  selected: (count) => `已选 ${count} 个`,
};

const TEXTS: Record<Language, typeof en> = { en, zh };

export function useSessionMessages(): typeof en {
  return TEXTS[usePreferences((preferences) => preferences.language)];
}
