// A status is an icon, a word and a colour.
import {
  Ban,
  CircleAlert,
  CircleCheck,
  CircleDashed,
  CirclePause,
  CircleX,
  Clock,
  Coffee,
  Hourglass,
  LoaderCircle,
  type LucideIcon,
} from 'lucide-react'
import classes from './status.module.css'

const LOOKS: Record<string, { icon: LucideIcon; tone: string }> = {
  queued: { icon: Clock, tone: 'pending' },
  pending: { icon: CircleDashed, tone: 'pending' },
  skipped: { icon: CircleDashed, tone: 'pending' },
  running: { icon: LoaderCircle, tone: 'running' },
  'in-progress': { icon: LoaderCircle, tone: 'running' },
  completed: { icon: CircleCheck, tone: 'completed' },
  active: { icon: CircleCheck, tone: 'completed' },
  partial: { icon: CircleAlert, tone: 'blocked' },
  blocked: { icon: CircleAlert, tone: 'blocked' },
  stuck: { icon: CircleAlert, tone: 'blocked' },
  paused: { icon: CirclePause, tone: 'paused' },
  waiting: { icon: Hourglass, tone: 'blocked' },
  bored: { icon: Coffee, tone: 'pending' },
  failed: { icon: CircleX, tone: 'failed' },
  timed_out: { icon: CircleX, tone: 'failed' },
  rejected: { icon: CircleX, tone: 'failed' },
  cancelled: { icon: Ban, tone: 'pending' },
}

export function Status({ of, title, size = 14 }: { of: string; title?: string; size?: number }) {
  const { icon: Icon, tone } = LOOKS[of] ?? { icon: CircleDashed, tone: 'pending' }
  return (
    <span className={classes.status} style={{ color: `var(--${tone})` }} title={title}>
      <Icon size={size} aria-hidden />
      <span>{of.replaceAll('_', ' ')}</span>
    </span>
  )
}
