// Beside the transcript: figures, limits, the waterfall, the work that the run belongs to, and the runs before it.
import { Progress, Stack, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Run, RunWait } from '../../../../src/kernel/run.ts'
import type { Step } from '../../api/shapes.ts'
import { AgentName } from '../../parts/agent-name.tsx'
import { Cost } from '../../parts/cost.tsx'
import { duration, tokens } from '../../parts/figures.ts'
import { Elapsed, When } from '../../parts/when.tsx'
import classes from './run-page.module.css'
import { Waterfall } from './waterfall.tsx'

interface Props {
  run: Run
  steps: readonly Step[]
  waits: readonly RunWait[]
}

export function RunAside({ run, steps, waits }: Props) {
  const { usage } = run
  return (
    <Stack gap="lg">
      <dl className={classes.figures}>
        <Figure name={run.completed_at === null && run.started_at !== null ? 'So far' : 'Took'}>
          <Elapsed from={run.started_at} ms={run.duration} />
        </Figure>
        <Figure name="Tokens">
          <span title={`${usage.input_tokens} in, ${usage.output_tokens} out`}>
            {usage.estimated && '≈ '}
            {tokens(usage.total_tokens)}
          </span>
        </Figure>
        <Figure name="Cost">
          <Cost run={run} isLink />
        </Figure>
        {run.model && (
          <Figure name="Model">
            <span className={classes.model} title={`${run.model.name} of ${run.model.provider}`}>
              {run.model.name} <span className="dim">{run.model.provider}</span>
            </span>
          </Figure>
        )}
        <Figure name="Started">
          <When at={run.started_at} />
        </Figure>
      </dl>
      {run.max_steps !== null && <StepLimit run={run} used={ownSteps(run, steps)} of={run.max_steps} />}
      {run.timeout !== null && run.duration !== null && (
        <Limit name="Time" value={run.duration} of={run.timeout} text={duration} />
      )}
      <section>
        <Title order={2} mb="xs">
          Time
        </Title>
        <Waterfall steps={steps} waits={waits} />
      </section>
      <Belonging run={run} />
      <Origins run={run} />
    </Stack>
  )
}

/** A run that reaches its limit has one more step, which sums up. */
function StepLimit({ run, used, of }: { run: Run; used: number; of: number }) {
  const name = isContinuation(run) ? 'Steps of this run alone' : 'Steps'
  return (
    <Limit name={name} value={Math.min(used, of)} of={of} text={String} more={used > of ? ', and a summary' : ''} />
  )
}

const isContinuation = (run: Run): boolean => run.resumed_from !== null || run.forked_from !== null

/** A continued run also has the steps of the run before it, which its limit does not count. */
function ownSteps(run: Run, steps: readonly Step[]): number {
  if (!isContinuation(run)) return run.step_count
  return steps.filter(({ kind, started_at }) => kind === 'model' && started_at >= run.created_at).length
}

function Figure({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt className="dim">{name}</dt>
      <dd className="number">{children}</dd>
    </div>
  )
}

interface LimitProps {
  name: string
  value: number
  of: number
  text: (value: number) => string
  /** Words after the figures. */
  more?: string
}

function Limit({ name, value, of, text, more = '' }: LimitProps) {
  const share = Math.min(100, (100 * value) / of)
  return (
    <div>
      <Text size="sm" className="number">
        {name}: {text(value)} of {text(of)}
        {more}
      </Text>
      <Progress
        value={share}
        aria-label={`${name} used`}
        color={share >= 95 ? 'red' : share >= 90 ? 'yellow' : 'indigo'}
        size="sm"
      />
    </div>
  )
}

/** The agent of the run, and the flow run or the task that it works for. */
function Belonging({ run }: { run: Run }) {
  const { project_id: projectId, agent_id: agentId, flow_run_id: startedId, trigger } = run
  const { flow_run_id: flowRunId, task_id: taskId } = trigger
  const isOfTask = trigger.type === 'task' && taskId !== undefined
  if (agentId === null && flowRunId === undefined && startedId === null && !isOfTask) return null
  return (
    <section aria-label="Belongs to">
      <Title order={2} mb="xs">
        Belongs to
      </Title>
      {agentId !== null && (
        <div>
          Agent <AgentName projectId={projectId} agentId={agentId} runId={run.id} />
        </div>
      )}
      {flowRunId !== undefined && (
        <div>
          <Link
            to="/projects/$projectId/flows/$flowRunId"
            params={{ projectId, flowRunId }}
            search={taskId === undefined ? {} : { task: taskId }}
          >
            Part of the flow run {flowRunId.slice(0, 8)}
          </Link>
        </div>
      )}
      {startedId !== null && (
        <div>
          <Link to="/projects/$projectId/flows/$flowRunId" params={{ projectId, flowRunId: startedId }}>
            Started the flow run {startedId.slice(0, 8)}
          </Link>
        </div>
      )}
      {isOfTask && (
        <div>
          <Link to="/projects/$projectId/organisation" params={{ projectId }} search={{ task: taskId }}>
            Works on the task {taskId.slice(0, 8)}
          </Link>
        </div>
      )}
    </section>
  )
}

/** The runs that this run came from. */
function Origins({ run }: { run: Run }) {
  const origins = [
    ['Started by the run', run.parent_run_id],
    ['Continues the run', run.resumed_from],
    ['Forked from the run', run.forked_from],
  ].filter((origin): origin is [string, string] => origin[1] !== null)
  if (origins.length === 0) return null
  return (
    <section>
      <Title order={2} mb="xs">
        Comes from
      </Title>
      {origins.map(([name, runId]) => (
        <div key={name}>
          <Link to="/projects/$projectId/runs/$runId" params={{ projectId: run.project_id, runId }}>
            {name} {runId.slice(0, 8)}
          </Link>
        </div>
      ))}
    </section>
  )
}
