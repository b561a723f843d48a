// The next five times of a schedule, as the scheduler itself finds them.
import { Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { schedulePreviewQuery } from '../../api/agents.ts'
import { When } from '../../parts/when.tsx'
import { timingProblem } from './agent-problems.ts'
import classes from './agents.module.css'

const TYPED_FOR_MS = 300

/** A schedule that is still being typed is not asked for. */
const isWhole = (cron: string): boolean => /^\s*([\d*,/-]+\s+){4}[\d*,/-]+\s*$/.test(cron)

export function useNextTimes(projectId: string, cron: string, timezone: string) {
  const [askedCron] = useDebouncedValue(cron.trim(), TYPED_FOR_MS)
  const [askedZone] = useDebouncedValue(timezone.trim(), TYPED_FOR_MS)
  const preview = useQuery({
    ...schedulePreviewQuery(projectId, askedCron, askedZone),
    enabled: isWhole(askedCron) && askedZone !== '',
  })
  const isCurrent = askedCron === cron.trim() && askedZone === timezone.trim()
  return {
    times: isCurrent ? (preview.data?.items ?? null) : null,
    problem: isCurrent ? timingProblem(preview.error) : null,
  }
}

export function NextTimes({ times, timezone }: { times: readonly string[] | null; timezone: string }) {
  if (times === null) return null
  return (
    <div role="status" aria-label="Next times">
      <Text size="sm" fw={500} mb={4}>
        Next times
      </Text>
      <ol className={classes.times}>
        {times.map((at) => (
          <li key={at}>
            <span className="number">{inZone(at, timezone)}</span>
            <span className="dim">
              <When at={at} />
            </span>
          </li>
        ))}
      </ol>
    </div>
  )
}

/** The browser may know fewer time zones than the server. */
function inZone(at: string, timeZone: string): string {
  const parts = {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  } as const
  try {
    return new Date(at).toLocaleString(undefined, { ...parts, timeZone })
  } catch {
    return `${new Date(at).toLocaleString(undefined, { ...parts, timeZone: 'UTC' })} UTC`
  }
}
