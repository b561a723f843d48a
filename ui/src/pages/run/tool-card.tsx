// A tool call: one line when folded, arguments and result when open. A refused call is amber and gives the reason.
import { Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Wrench } from 'lucide-react'
import type { ToolStep } from '../../api/shapes.ts'
import { PersonName } from '../../app/person-name.tsx'
import { duration, oneLine } from '../../parts/figures.ts'
import { Value } from '../../parts/value.tsx'
import { Instant } from '../../parts/when.tsx'
import classes from './transcript.module.css'

const REFUSALS: Record<string, string> = {
  doom_loop: 'refused: the same call again and again',
  step_limit: 'not made: the step limit was reached',
  timeout: 'not made: the time was up',
  capability: 'refused: the agent may not do this',
  recursion_limit: 'refused: too many specialists in a row',
  spawn_depth: 'refused: too many agents below each other',
  budget: 'not made: no tokens were left',
}

/** A call that is running, or waits for a person, has no result yet. */
type Call = ToolStep | Pick<ToolStep, 'name' | 'args'>

interface Props {
  call: Call
  projectId: string
  /** The words of a call without a result. */
  pending?: string
  /** True: a person has said whether a call of unknown outcome was made, and another run continues. */
  isDecided?: boolean
}

export function ToolCard({ call, projectId, pending = 'running', isDecided = false }: Props) {
  const done = 'result' in call ? call : null
  const refusal = done?.blocked ? (REFUSALS[done.blocked] ?? done.blocked) : null
  const decision = done?.decision ?? null
  const isRejected = decision?.decision === 'rejected'
  const isUnknown = done?.outcome !== undefined && !isDecided
  const tone = refusal || isRejected || isUnknown ? 'blocked' : done?.is_error ? 'failed' : 'plain'
  const subRun = done ? subRunOf(done) : null
  const outcome = isDecided ? 'a person has said whether it was done' : 'nobody knows whether it was done'
  const note = done ? (refusal ?? (done.outcome ? outcome : duration(done.duration))) : pending
  return (
    <details className={classes.card} data-tone={tone}>
      <summary>
        <Wrench size={13} aria-hidden />
        <span className="mono">{call.name}</span>
        <span className="dim cut mono" style={{ flex: 1 }}>
          {oneLine(call.args, 120)}
        </span>
        <span className="number" style={{ color: tone === 'plain' ? 'var(--dim)' : `var(--${tone})` }}>
          {decision && (
            <>
              {decision.decision} by <PersonName projectId={projectId} id={decision.by} />, <Instant at={decision.at} />
              {!isRejected && ' · '}
            </>
          )}
          {!isRejected && (done?.is_error && !refusal ? `error · ${note}` : note)}
        </span>
      </summary>
      <div className={classes.parts}>
        <Text size="xs" className="dim">
          Arguments
        </Text>
        <Value of={call.args} />
        {done && (
          <>
            <Text size="xs" className="dim">
              Result
            </Text>
            <Value of={done.result} />
          </>
        )}
        {subRun && (
          <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: subRun }}>
            Open the run of this agent
          </Link>
        )}
      </div>
    </details>
  )
}

/** The run that `spawn_agent` started. */
function subRunOf({ name, result }: ToolStep): string | null {
  if (name !== 'spawn_agent' || typeof result !== 'object' || result === null) return null
  return 'run_id' in result && typeof result.run_id === 'string' ? result.run_id : null
}
