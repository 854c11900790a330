/** The event types under the names that the page uses. */
import type { Payloads } from './events.gen';

export type {
  ApprovalItem,
  Attachment,
  ControlFrames,
  Envelope,
  EventName,
  ManifestEntry,
  Payloads,
  Plan,
  PlanStep,
  QuestionAnswered,
  QuestionAsked,
  Usage,
} from './events.gen';

export type Status = Payloads['workflow.lifecycle.updated']['status'];
export type StopReason = Payloads['workflow.result.final']['stop_reason'];
export type Complexity = Payloads['workflow.plan.updated']['complexity'];
