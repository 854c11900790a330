/** The types of the stream under the names that the page uses. */
import { CONTROLS, EVENTS, type Envelope, type Payloads } from './events.gen';

export type {
  ApprovalItem,
  Attachment,
  ControlFrames,
  Envelope,
  EventName,
  Plan,
  PlanStep,
  QuestionAnswered,
  QuestionAsked,
  Usage,
} from './events.gen';

export type Status = Payloads['workflow.lifecycle.updated']['status'];
export type StopReason = Payloads['workflow.result.final']['stop_reason'];
export type Complexity = Payloads['workflow.plan.updated']['complexity'];

/** Every name that a stream can carry: what is not listened for is not delivered. */
export const EVENT_NAMES = Object.keys(EVENTS) as Array<Envelope['event']>;
export const CONTROL_NAMES = CONTROLS;
