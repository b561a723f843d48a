import type { Style } from './screen.ts'

const STYLES: Readonly<Record<string, Style>> = {
  completed: 'green',
  active: 'green',
  running: 'cyan',
  queued: 'dim',
  bored: 'dim',
  paused: 'yellow',
  partial: 'yellow',
  stuck: 'red',
  failed: 'red',
  timed_out: 'red',
  cancelled: 'dim',
  disabled: 'dim',
}

/** The colour of a status of runs, flow runs and agents. */
export const statusStyle = (status: string): Style | undefined => STYLES[status]
