// Beside the views while no task is chosen: what the flow run was given and gave, and how well it used its time.
import { Stack, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { type FlowMetrics, type FlowTopology, flowRunPath } from '../../api/flows.ts'
import { duration } from '../../parts/figures.ts'
import { Readable } from '../../parts/readable.tsx'
import { When } from '../../parts/when.tsx'
import classes from './flow-page.module.css'
import { QueenPlan } from './queen-plan.tsx'
import { Fact, Part } from './task-details.tsx'
import { useFlowStore } from './use-flow-store.ts'

interface Props {
  projectId: string
  run: FlowRun
  topology: FlowTopology | undefined
  metrics: FlowMetrics | undefined
  onChoose: (taskId: string) => void
}

export function FlowDetails({ projectId, run, topology, metrics, onChoose }: Props) {
  return (
    <Stack gap="md">
      <Title order={2}>Details</Title>
      {run.output !== null && run.output !== undefined && (
        <Part name="Output">
          <Readable of={run.output} />
          {isCut(run.output) && <a href={flowRunPath(projectId, run.id, '/output')}>The whole output</a>}
        </Part>
      )}
      <dl className={classes.facts}>
        <Fact name="Started">
          <When at={run.started_at} />
        </Fact>
        {run.completed_at !== null && (
          <Fact name="Ended">
            <When at={run.completed_at} />
          </Fact>
        )}
        <Fact name="Workers">
          at most {run.workers} {run.workers === 1 ? 'task' : 'tasks'} at once
        </Fact>
        {metrics && (
          <Fact name="Worker time">
            <span title="The time of all tasks together, as a share of the time that the workers had from start to end.">
              {Math.round(100 * metrics.worker_utilization)}% spent on tasks, the rest idle
            </span>
          </Fact>
        )}
        <Fact name="Id">
          <span className="mono">{run.id}</span>
        </Fact>
      </dl>
      {run.flow_id !== null && (
        <Link to="/projects/$projectId/flows/definitions/$flowId" params={{ projectId, flowId: run.flow_id }}>
          Open its flow
        </Link>
      )}
      {run.resumed_from !== null && (
        <Link to="/projects/$projectId/flows/$flowRunId" params={{ projectId, flowRunId: run.resumed_from }}>
          Continues the flow run {run.resumed_from.slice(0, 8)}
        </Link>
      )}
      {run.parent_run_id !== null && (
        <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: run.parent_run_id }}>
          Open the run that started it
        </Link>
      )}
      <QueenPlan projectId={projectId} onChoose={onChoose} />
      {metrics && <Bottlenecks metrics={metrics} onChoose={onChoose} />}
      {topology?.current && <TopologyFacts topology={topology} />}
      {run.completed_at !== null && <Results projectId={projectId} run={run} />}
      {run.input !== null && run.input !== undefined && (
        <Part name="Input">
          <Readable of={run.input} />
        </Part>
      )}
    </Stack>
  )
}

const isCut = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'truncated' in value && value.truncated === true

const MOST_RESULTS = 50

function Results({ projectId, run }: { projectId: string; run: FlowRun }) {
  const url = flowRunPath(projectId, run.id, '/output?part=results')
  const isLarge = run.results.truncated === true && run.results.url === url
  const entries = isLarge ? [] : Object.entries(run.results)
  if (!isLarge && entries.length === 0) return null
  return (
    <Part name={isLarge ? 'Results' : `Results (${entries.length})`}>
      {entries.slice(0, MOST_RESULTS).map(([id, value]) => (
        <details key={id}>
          <summary>{id}</summary>
          <Readable of={value} />
        </details>
      ))}
      {(isLarge || entries.length > MOST_RESULTS) && <a href={url}>All results</a>}
    </Part>
  )
}

function Bottlenecks({ metrics, onChoose }: { metrics: FlowMetrics; onChoose: (taskId: string) => void }) {
  const store = useFlowStore()
  const { bottlenecks, recommendations } = metrics
  return (
    <>
      {bottlenecks.length > 0 && (
        <Part name="Bottlenecks">
          <ul className={classes.plain}>
            {bottlenecks.map(({ task_id: id, duration: ms, share, blocks }) => (
              <li key={id}>
                <button type="button" className={classes.choice} onClick={() => onChoose(id)}>
                  {store.task(id)?.name ?? id}
                </button>{' '}
                <span className="dim number">
                  {duration(ms)}, {Math.round(100 * share)}% of the time
                  {blocks.length > 0 &&
                    `, ${blocks.length === 1 ? '1 task waits' : `${blocks.length} tasks wait`} for it`}
                </span>
              </li>
            ))}
          </ul>
        </Part>
      )}
      {recommendations.length > 0 && (
        <Part name="Recommendations">
          <ul className={classes.list}>
            {recommendations.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        </Part>
      )}
    </>
  )
}

function TopologyFacts({ topology }: { topology: FlowTopology }) {
  const { current, history, handovers, by_topology, recommendation } = topology
  return (
    <Part name="Topology">
      <dl className={classes.facts}>
        <Fact name="Now">{current}</Fact>
        {handovers.length > 0 && <Fact name="Handovers">{handovers.length}</Fact>}
        {recommendation && <Fact name="Best">{`${recommendation.topology}: ${recommendation.reason}`}</Fact>}
        {Object.entries(by_topology).map(([name, { tasks, throughput, wait, duration: ms }]) => (
          <Fact key={name} name={`In ${name}`}>
            {tasks} tasks, {throughput.toFixed(1)} a second, wait {duration(wait)}, work {duration(ms)}
          </Fact>
        ))}
      </dl>
      <ul className={classes.list} aria-label="Switches of the topology">
        {history.map(({ from, to, reason, at, moved, switch_ms: ms }) => (
          <li key={at}>
            {from} → {to}: {reason}, {moved} moved in {duration(ms)}, <When at={at} />
          </li>
        ))}
      </ul>
    </Part>
  )
}
