import { Progress, Table } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { memo } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { isChangeable, patternName, statusOfFlow } from '../../api/flows.ts'
import { cost, oneLine } from '../../parts/figures.ts'
import { etaText, percentDone } from '../../parts/flow-progress.ts'
import { OpenRow } from '../../parts/open-row.tsx'
import { Status } from '../../parts/status.tsx'
import { useSteadyOrder } from '../../parts/steady-order.ts'
import { Elapsed, useNow, When } from '../../parts/when.tsx'
import classes from './flows-page.module.css'

/** Widths are fixed: words that change in one row would otherwise move all of them. The flow has the rest. */
const COLUMNS = [
  ['Status', 100],
  ['Flow', undefined],
  ['Pattern', 94],
  ['Progress', 160],
  ['ETA', 88],
  ['Took', 66],
  ['Started', 82],
  ['Cost', 60],
] as const

interface Props {
  projectId: string
  runs: readonly FlowRun[]
  names: ReadonlyMap<string, string>
}

export function FlowRunTable({ projectId, runs, names }: Props) {
  const byId = new Map(runs.map((run) => [run.id, run]))
  const { order, hold } = useSteadyOrder(runs.map(({ id }) => id))
  return (
    <Table.ScrollContainer minWidth={800}>
      <Table layout="fixed" className={classes.runs ?? ''} verticalSpacing={5} highlightOnHover aria-label="Flow runs">
        <Table.Thead>
          <Table.Tr>
            {COLUMNS.map(([name, width]) => (
              <Table.Th key={name} className="dim" fw={500} w={width}>
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody {...hold}>
          {order.map((id) => {
            const run = byId.get(id)
            return run && <Row key={id} projectId={projectId} run={run} name={nameOf(run, names)} />
          })}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

/** A run that was started without a stored flow has no name of its own. */
const nameOf = ({ flow_id, pattern }: FlowRun, names: ReadonlyMap<string, string>): string => {
  const [first = '', ...rest] = patternName(pattern)
  return (flow_id !== null && names.get(flow_id)) || `${first.toUpperCase()}${rest.join('')} flow`
}

const Row = memo(function Row({ projectId, run, name }: { projectId: string; run: FlowRun; name: string }) {
  const { progress } = run
  const percent = percentDone(run)
  return (
    <OpenRow data-run={run.id} data-status={run.status}>
      <Table.Td>
        <Status of={statusOfFlow(run)} {...(run.error !== null && { title: run.error })} />
      </Table.Td>
      <Table.Td>
        <div className="cut">
          <Link to="/projects/$projectId/flows/$flowRunId" params={{ projectId, flowRunId: run.id }}>
            {name}
          </Link>
        </div>
        {run.input !== null && <div className={`cut dim ${classes.about}`}>{oneLine(run.input, 90)}</div>}
      </Table.Td>
      <Table.Td className="dim">{patternName(run.pattern)}</Table.Td>
      <Table.Td>
        <Progress.Root size="sm">
          <Progress.Section
            value={percent}
            color={progress.failed > 0 ? 'red' : run.status === 'completed' ? 'green' : 'blue'}
            aria-label={`Progress of ${name}`}
          />
        </Progress.Root>
        <div className="cut dim number">
          {progress.completed} of {progress.total}
          {progress.running > 0 && `, ${progress.running} running`}
          {progress.failed > 0 && `, ${progress.failed} failed`}
        </div>
      </Table.Td>
      <Table.Td className="number">
        <Eta run={run} />
      </Table.Td>
      <Table.Td>
        <Elapsed from={run.started_at} ms={run.duration} />
      </Table.Td>
      <Table.Td className="dim">
        <When at={run.started_at ?? run.created_at} />
      </Table.Td>
      <Table.Td className="number">{cost(run.usage.cost_usd)}</Table.Td>
    </OpenRow>
  )
})

function Eta({ run }: { run: FlowRun }) {
  const now = useNow()
  return isChangeable(run) ? etaText(run.eta, now) : <span className="dim">–</span>
}
