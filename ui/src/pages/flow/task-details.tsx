// Beside the views: all that is known about the chosen task.
import { Button, Group, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import { whyStopped } from '../../../../src/kernel/why-stopped.ts'
import type { FlowTask } from '../../api/flow-trace.ts'
import { flowRunPath } from '../../api/flows.ts'
import { findIn, LONGEST_PAGE } from '../../api/pages.ts'
import { projectPath, runQuery } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { cost, tokens } from '../../parts/figures.ts'
import { NextTry } from '../../parts/next-try.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { Readable } from '../../parts/readable.tsx'
import { Status } from '../../parts/status.tsx'
import { TryNow } from '../../parts/try-now.tsx'
import { Value } from '../../parts/value.tsx'
import { Elapsed, When } from '../../parts/when.tsx'
import classes from './flow-page.module.css'
import { useLeafFailure } from './flow-reason.tsx'
import { shownStatus, type TaskRow } from './flow-store.ts'
import { waitingFor } from './timeline-scale.ts'
import { useFlowStore, useTask } from './use-flow-store.ts'

interface Props {
  projectId: string
  run: FlowRun
  taskId: string
  onChoose: (id: string | undefined) => void
}

export function TaskDetails({ projectId, run, taskId, onChoose }: Props) {
  const task = useTask(taskId)
  if (!task) return <p className="dim">This flow run has no task {taskId}.</p>
  const { start_at: start, end_at: end, usage } = task
  return (
    <Stack gap="md">
      <Group justify="space-between" wrap="nowrap">
        <Title order={2} style={{ overflowWrap: 'anywhere' }}>
          {task.name}
        </Title>
        <Button
          size="compact-xs"
          variant="subtle"
          color="gray"
          aria-label="Close the details"
          onClick={() => onChoose(undefined)}
        >
          <X size={14} aria-hidden />
        </Button>
      </Group>
      <dl className={classes.facts}>
        <Fact name="Status">
          <Status of={task.waitingRuns.length > 0 ? 'waiting' : shownStatus(task)} />
          <LeafWait projectId={projectId} task={task} />
        </Fact>
        <Fact name={task.kind === 'agent' ? 'Agent' : 'Worker'}>{task.worker ?? '–'}</Fact>
        <Fact name="Attempts">{task.attempts}</Fact>
        <Fact name="Started">
          <When at={start} />
        </Fact>
        <Fact name={start !== null && end === null ? 'So far' : 'Took'}>
          {start === null ? (
            '–'
          ) : (
            <Elapsed from={start} ms={end === null ? null : Date.parse(end) - Date.parse(start)} />
          )}
        </Fact>
        {usage && <Fact name="Tokens">{`${tokens(usage.total_tokens)} · ${cost(usage.cost_usd)}`}</Fact>}
        <Fact name="Id">
          <span className="mono">{task.id}</span>
        </Fact>
      </dl>
      {task.error !== null && (
        <Part name="Error">
          <Failure projectId={projectId} task={task} error={task.error} />
        </Part>
      )}
      {task.kind === 'agent' ? (
        <OfRun projectId={projectId} flowRunId={run.id} task={task} />
      ) : (
        <Output run={run} taskId={task.id} />
      )}
      {run.progress.items !== undefined && <SkippedItems projectId={projectId} run={run} taskId={task.id} />}
      <Waits task={task} onChoose={onChoose} />
    </Stack>
  )
}

/** The awaited thing of the first run that waits. */
function LeafWait({ projectId, task }: { projectId: string; task: TaskRow }) {
  const [runId = ''] = task.waitingRuns
  const mayWrite = useRole(projectId) !== 'viewer'
  const { data: run } = useQuery({ ...runQuery(projectId, runId), enabled: runId !== '' })
  if (task.waitingRuns.length === 0) return null
  const stop = run ? whyStopped(run, task.worker ?? 'It') : null
  return (
    <>
      {' '}
      {showMarks(stop?.why ?? 'It waits.')} {run?.next_try_at && <NextTry at={run.next_try_at} />}
      {run && stop?.action === 'try_now' && mayWrite && <TryNow run={run} />}
    </>
  )
}

/** The reason in plain words; the error itself where the run of the task does not tell it. */
function Failure({ projectId, task, error }: { projectId: string; task: TaskRow; error: string }) {
  const leaf = useLeafFailure(projectId, task)
  return leaf ? <p>{showMarks(leaf.failure.text)}</p> : <Value of={error} />
}

export function Part({ name, children }: { name: string; children: ReactNode }) {
  return (
    <section>
      <Title order={3} mb={4}>
        {name}
      </Title>
      {children}
    </section>
  )
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="dim">{name}</dt>
      <dd className="number">{children}</dd>
    </>
  )
}

/** The run of an agent's task. Events do not tell its id, so a run under way is looked for among those of the flow run. */
function OfRun({ projectId, flowRunId, task }: { projectId: string; flowRunId: string; task: TaskRow }) {
  const found = useQuery({
    queryKey: ['run', projectId, 'list', 'of-task', flowRunId, task.id, task.attempts],
    queryFn: () => findRun(projectId, flowRunId, task.id),
    enabled: task.run_id === null && task.start_at !== null,
  })
  const runId = task.run_id ?? found.data?.id ?? null
  const run = useQuery({ ...runQuery(projectId, runId ?? ''), enabled: runId !== null })
  if (runId === null) return null
  return (
    <>
      <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId }}>
        Open its run
      </Link>
      {run.data && (
        <>
          <Part name="Input">
            <Readable of={run.data.input} />
          </Part>
          {run.data.summary !== null && (
            <Part name="Output">
              <Readable of={run.data.summary} />
            </Part>
          )}
        </>
      )}
    </>
  )
}

const findRun = (projectId: string, flowRunId: string, taskId: string): Promise<Run | null> =>
  findIn<Run>(
    projectPath(projectId, '/runs'),
    { flow_run_id: flowRunId, limit: LONGEST_PAGE },
    ({ trigger }) => trigger.task_id === taskId,
  )

function Output({ run, taskId }: { run: FlowRun; taskId: string }) {
  if (!Object.hasOwn(run.results, taskId)) return null
  return (
    <Part name="Output">
      <Readable of={run.results[taskId]} />
    </Part>
  )
}

function SkippedItems({ projectId, run, taskId }: { projectId: string; run: FlowRun; taskId: string }) {
  const { skipped = 0, completed = 0, total = 0, failed = 0 } = run.progress.items ?? {}
  const task = useQuery({
    queryKey: ['flow_facts', projectId, run.id, 'skipped', taskId],
    queryFn: () =>
      findIn<FlowTask>(flowRunPath(projectId, run.id, '/tasks'), { limit: LONGEST_PAGE }, ({ id }) => id === taskId),
    enabled: skipped > 0,
  })
  const items = task.data?.skipped ?? []
  return (
    <Part name="Items">
      <p className="number">
        {completed} of {total} done, {failed} failed, {skipped} skipped
      </p>
      <ul className={classes.list}>
        {items.map(({ index, stage, error }) => (
          <li key={index}>
            Item {index} at stage {stage}: {error}
          </li>
        ))}
      </ul>
    </Part>
  )
}

const MOST_NAMED = 12

function Waits({ task, onChoose }: { task: TaskRow; onChoose: (id: string) => void }) {
  const store = useFlowStore()
  const after = waitingFor(store.tasks(), task.id).map(({ id }) => id)
  const lists = [
    { name: 'Waited for', ids: task.depends_on },
    { name: 'Waiting for it', ids: after },
  ]
  return lists.map(
    ({ name, ids }) =>
      ids.length > 0 && (
        <Part key={name} name={`${name} (${ids.length})`}>
          <ul className={classes.plain}>
            {ids.slice(0, MOST_NAMED).map((id) => (
              <li key={id}>
                <button type="button" className={classes.choice} onClick={() => onChoose(id)}>
                  {store.task(id)?.name ?? id}
                </button>
              </li>
            ))}
          </ul>
          {ids.length > MOST_NAMED && <span className="dim">and {ids.length - MOST_NAMED} more</span>}
        </Part>
      ),
  )
}
