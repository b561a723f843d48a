import { Progress, Table } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { memo } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { patternName, statusOfFlow } from '../../api/flows.ts'
import { useIsHalted } from '../../app/halt.tsx'
import { cost, fieldsLine } from '../../parts/figures.ts'
import { etaOf, percentDone } from '../../parts/flow-progress.ts'
import { OpenRow } from '../../parts/open-row.tsx'
import { Status } from '../../parts/status.tsx'
import { useSteadyOrder } from '../../parts/steady-order.ts'
import { Elapsed, useNow, When } from '../../parts/when.tsx'
import classes from './flows-page.module.css'

/** Widths are fixed: words that change in one row would otherwise move all of them. The flow has the rest. */
const COLUMNS = [
  ['Status', 98],
  ['Flow', undefined],
  ['Progress', 128],
  ['ETA', 104],
  ['Took', 76],
  ['Started', 90],
  ['Cost', 80],
] as const
/** The flow has 150 pixels of it at least. */
const NARROWEST = 726

interface Props {
  projectId: string
  runs: readonly FlowRun[]
  names: ReadonlyMap<string, string>
}

export function FlowRunTable({ projectId, runs, names }: Props) {
  const isHalted = useIsHalted(projectId)
  const byId = new Map(runs.map((run) => [run.id, run]))
  const { order, hold } = useSteadyOrder(runs.map(({ id }) => id))
  return (
    <Table.ScrollContainer
      type="native"
      minWidth={NARROWEST}
      pos="relative"
      tabIndex={0}
      role="group"
      aria-label="Flow runs, wide"
    >
      <Table
        layout="fixed"
        className={classes.runs ?? ''}
        verticalSpacing={5}
        horizontalSpacing={8}
        highlightOnHover
        aria-label="Flow runs"
      >
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
            return run && <Row key={id} projectId={projectId} run={run} name={nameOf(run, names)} isHalted={isHalted} />
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

interface RowProps {
  projectId: string
  run: FlowRun
  name: string
  isHalted: boolean
}

const Row = memo(function Row({ projectId, run, name, isHalted }: RowProps) {
  const { progress } = run
  const status = statusOfFlow(run, isHalted)
  const percent = percentDone(run)
  return (
    <OpenRow data-run={run.id} data-status={run.status}>
      <Table.Td>
        <Status of={status} {...(run.error !== null && { title: run.error })} />
      </Table.Td>
      <Table.Td>
        <div className="cut">
          <Link to="/projects/$projectId/flows/$flowRunId" params={{ projectId, flowRunId: run.id }}>
            {name}
          </Link>
        </div>
        <div className={`cut dim ${classes.about}`}>
          {patternName(run.pattern)}
          {run.input !== null && ` · ${fieldsLine(run.input, 90)}`}
        </div>
      </Table.Td>
      <Table.Td>
        <Progress.Root size="sm">
          <Progress.Section
            value={percent}
            color={progress.failed > 0 ? 'red' : run.status === 'completed' ? 'green' : 'blue'}
            aria-label={`Progress of ${name}`}
          />
        </Progress.Root>
        <div className={`dim number ${classes.counts}`}>
          {progress.completed} of {progress.total}
          {progress.running > run.waiting && `, ${progress.running - run.waiting} running`}
          {run.waiting > 0 && `, ${run.waiting} waiting`}
          {progress.failed > 0 && `, ${progress.failed} failed`}
        </div>
      </Table.Td>
      <Table.Td className="number">
        <Eta status={status} eta={run.eta} />
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

function Eta({ status, eta }: { status: string; eta: string | null }) {
  const now = useNow()
  return etaOf(status, eta, now) ?? <span className="dim">–</span>
}
