// A flow run whose tasks wait says so in one sentence, with the way to try again at once.
import { Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Hourglass } from 'lucide-react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import { awaitedBy, providerWords, whyStopped } from '../../../../src/kernel/why-stopped.ts'
import { runQuery } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { NextTry } from '../../parts/next-try.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { TryNow } from '../../parts/try-now.tsx'
import classes from './flow-page.module.css'
import { useFlowStore, useTotals } from './use-flow-store.ts'

/** Tells of the first task that waits, while the flow run is running. */
export function FlowWait({ projectId, run }: { projectId: string; run: FlowRun }) {
  const store = useFlowStore()
  useTotals()
  const mayWrite = useRole(projectId) !== 'viewer'
  const waiting = [...store.tasks()].filter(({ waitingRuns }) => waitingRuns.length > 0)
  const [first] = waiting
  const runId = first?.waitingRuns[0] ?? ''
  const { data: leaf } = useQuery({ ...runQuery(projectId, runId), enabled: runId !== '' })
  if (run.completed_at !== null || !first || !leaf || leaf.completed_at !== null) return null
  const text = sentenceOf(leaf, first.worker ?? first.name)
  if (text === null) return null
  const others = waiting.length - 1
  return (
    <section className={classes.note} data-tone="blocked" aria-label="Wait">
      <Hourglass size={15} aria-hidden />
      <p>
        {showMarks(text)} {leaf.next_try_at !== null && <NextTry at={leaf.next_try_at} />}
        {others > 0 && ` ${others === 1 ? '1 other task waits' : `${others} other tasks wait`} too.`}
      </p>
      <Group gap="xs">
        {mayWrite && awaitedBy(leaf)?.kind === 'provider' && <TryNow run={leaf} />}
        <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId }}>
          Open its run
        </Link>
      </Group>
    </section>
  )
}

/** "Waiting for the provider openai, which answered 429: Slow down." Null for a run that works again. */
function sentenceOf(leaf: Run, subject: string): string | null {
  const awaited = awaitedBy(leaf)
  if (awaited?.kind !== 'provider') return whyStopped(leaf, subject)?.why ?? null
  const words = (providerWords(leaf) ?? '').trim().replace(/[.\s]+$/, '')
  const joint = words === '' || words.startsWith(',') || words.startsWith(':') ? '' : ' '
  return `Waiting for provider ${awaited.name}${joint}${words}.`
}
