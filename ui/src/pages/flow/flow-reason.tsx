// Why a flow run did not end well: the task that failed, in plain words, and what can be done about it.
import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { StepForward, TriangleAlert } from 'lucide-react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import { useAgentName } from '../../api/agent-names.ts'
import { runQuery } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { showMarks } from '../../parts/property-diff.ts'
import classes from './flow-page.module.css'
import type { TaskRow } from './flow-store.ts'
import { type LeafFailure, whyLeafFailed } from './leaf-failure.ts'
import { useFlowStore, useTotals } from './use-flow-store.ts'

interface Props {
  projectId: string
  run: FlowRun
  onChoose: (taskId: string) => void
  onResume: () => void
}

const REASONS: Readonly<Record<string, string>> = {
  failed: 'It failed.',
  timed_out: 'It took longer than its timeout.',
  partial: 'It ended, but not everything worked.',
  cancelled: 'It was cancelled.',
}

/** The reason of an end that is not a success, with the first task that failed. */
export function FlowReason({ projectId, run, onChoose, onResume }: Props) {
  const store = useFlowStore()
  useTotals()
  const reason = REASONS[run.status]
  const failed = reason === undefined ? [] : [...store.tasks()].filter(({ status }) => status === 'failed')
  const first = failed.find(({ run_id }) => run_id !== null) ?? failed[0]
  const leaf = useLeafFailure(projectId, first)
  const role = useRole(projectId)
  const mayWrite = role !== 'viewer'
  if (reason === undefined) return null
  const isBad = run.status === 'failed' || run.status === 'timed_out'
  return (
    <section className={classes.note} data-tone={isBad ? 'failed' : 'blocked'} aria-label="Reason">
      <TriangleAlert size={15} aria-hidden />
      <div className={classes.reason}>
        <strong>{reason}</strong>{' '}
        {first && leaf ? (
          <>
            The task <em>{showMarks(first.name)}</em> gave no result. {showMarks(leaf.failure.text)}
            {failed.length > 1 &&
              ` ${failed.length === 2 ? '1 other task' : `${failed.length - 1} other tasks`} failed too.`}
          </>
        ) : (
          run.error
        )}
        {mayWrite && <div className="dim">{adviceOf(run, leaf?.failure ?? null, role === 'admin')}</div>}
      </div>
      <Group gap="xs">
        {run.resumed_as !== null ? (
          <Link to="/projects/$projectId/flows/$flowRunId" params={{ projectId, flowRunId: run.resumed_as }}>
            Open the flow run that continues it
          </Link>
        ) : (
          mayWrite && (
            <Button size="compact-sm" leftSection={<StepForward size={13} aria-hidden />} onClick={onResume}>
              Resume
            </Button>
          )
        )}
        {first && (
          <Button size="compact-sm" variant="default" onClick={() => onChoose(first.id)}>
            Show {first.name}
          </Button>
        )}
        {leaf && <LeafLinks projectId={projectId} of={leaf} />}
      </Group>
    </section>
  )
}

function adviceOf(run: FlowRun, leaf: LeafFailure | null, isAdmin: boolean): string {
  if (run.resumed_as !== null) return 'Another flow run continues it.'
  const again = 'Run again starts it from the beginning, and may repeat calls that took effect.'
  const { completed } = run.progress
  const kept =
    completed === 0 ? '' : `: ${completed === 1 ? '1 finished task is' : `${completed} finished tasks are`} kept`
  const raise = isAdmin ? 'Raise the limit first. ' : 'Ask an admin to raise the limit first. '
  return `${leaf?.limit ? raise : ''}Resume continues it${kept}. ${again}`
}

interface FailedLeaf {
  run: Run
  agentName: string
  failure: LeafFailure
}

/** Null while the run of the task is not known, for a task without one, and for a run that did not fail. */
export function useLeafFailure(projectId: string, task: TaskRow | undefined): FailedLeaf | null {
  const runId = task?.run_id ?? null
  const { data: run } = useQuery({ ...runQuery(projectId, runId ?? ''), enabled: runId !== null })
  const name = useAgentName(projectId, run?.agent_id ?? null)
  if (!run || runId === null) return null
  const agentName = name ?? 'The agent'
  const failure = whyLeafFailed(run, agentName)
  return failure && { run, agentName, failure }
}

/** The ways to what happened, and to the limit that was too low. */
export function LeafLinks({ projectId, of: { run, agentName, failure } }: { projectId: string; of: FailedLeaf }) {
  const isAdmin = useRole(projectId) === 'admin'
  const { agent_id: agentId } = run
  const { limit } = failure
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        renderRoot={(props) => (
          <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: run.id }} {...props} />
        )}
      >
        Open its run
      </Button>
      {isAdmin && limit !== null && agentId !== null && (
        <Button
          size="compact-sm"
          variant="default"
          renderRoot={(props) => (
            <Link
              to="/projects/$projectId/agents/$agentId/edit"
              params={{ projectId, agentId }}
              search={{ field: limit.field }}
              {...props}
            />
          )}
        >
          {limit.words} of {showMarks(agentName)}
        </Button>
      )}
    </>
  )
}
