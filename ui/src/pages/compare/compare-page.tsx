// Two runs side by side: their figures, and their steps aligned, with what differs marked.
import { Button, Group, Switch, Table, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { ArrowLeftRight } from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import type { Run } from '../../../../src/kernel/run.ts'
import { useNamesOfRuns } from '../../api/agent-names.ts'
import { ApiError } from '../../api/client.ts'
import { runQuery, stepsQuery } from '../../api/queries.ts'
import type { Step } from '../../api/shapes.ts'
import { Unknown } from '../../app/unknown.tsx'
import { Cost } from '../../parts/cost.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { When } from '../../parts/when.tsx'
import { alignTurns, type Row, type Turn, turnsOf, withInherited } from './align.ts'
import classes from './compare.module.css'
import { ComparedStep } from './compared-step.tsx'
import { differencesOf, type Figure, figuresOf } from './differences.ts'

const ROUTE = '/projects/$projectId/runs/$runId/compare/$otherId'
const route = getRouteApi(ROUTE)

export function ComparePage() {
  const { projectId, runId, otherId } = route.useParams()
  const [left, leftSteps] = useRun(projectId, runId)
  const [right, rightSteps] = useRun(projectId, otherId)
  const reads = [left, right, leftSteps, rightSteps]
  const retry = (): void => {
    for (const read of reads) void read.refetch()
  }
  const failed = reads.find(({ isError }) => isError)
  if (failed?.error instanceof ApiError && failed.error.status === 404) return <Unknown />
  if (left.data && right.data && leftSteps.data && rightSteps.data) {
    return (
      <>
        <Head left={left.data} right={right.data} />
        {failed && <Stale onRetry={retry} />}
        <Figures left={left.data} right={right.data} />
        <Steps
          key={`${runId} ${otherId}`}
          left={{ run: left.data, steps: leftSteps.data }}
          right={{ run: right.data, steps: rightSteps.data }}
        />
      </>
    )
  }
  return failed ? (
    <Failure what="The runs could not be read." error={failed.error} onRetry={retry} />
  ) : (
    <Loading lines={10} />
  )
}

const READ_EVERY_MS = 2_000

/** A run and its steps. Those of a run under way are read again and again, and once more after its end. */
function useRun(projectId: string, runId: string) {
  const run = useQuery({
    ...runQuery(projectId, runId),
    refetchInterval: ({ state }) => (state.data?.completed_at === null ? READ_EVERY_MS : false),
  })
  const isUnderWay = run.data?.completed_at === null
  const steps = useQuery({ ...stepsQuery(projectId, runId), refetchInterval: isUnderWay ? READ_EVERY_MS : false })
  const { refetch } = steps
  useEffect(() => {
    if (isUnderWay) return () => void refetch()
  }, [isUnderWay, refetch])
  return [run, steps] as const
}

function Head({ left, right }: { left: Run; right: Run }) {
  const navigate = useNavigate()
  const projectId = left.project_id
  return (
    <PageHead
      name="Compare"
      title={
        <div>
          <Link to="/projects/$projectId/runs" params={{ projectId }} className="dim">
            Runs
          </Link>
          <Title order={1}>Compare</Title>
        </div>
      }
    >
      <Button
        size="xs"
        variant="default"
        leftSection={<ArrowLeftRight size={13} aria-hidden />}
        onClick={() =>
          void navigate({ to: ROUTE, params: { projectId, runId: right.id, otherId: left.id }, replace: true })
        }
      >
        Swap sides
      </Button>
    </PageHead>
  )
}

function Figures({ left, right }: { left: Run; right: Run }) {
  const nameOf = useNamesOfRuns([left, right])
  return (
    <Table.ScrollContainer minWidth={640} className={classes.figures} scrollAreaProps={{ tabIndex: 0 }}>
      <Table verticalSpacing={5} aria-label="Figures">
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={90} className="dim" fw={500}>
              Run
            </Table.Th>
            {[left, right].map((run, place) => (
              <Table.Th key={place === 0 ? 'left' : 'right'}>
                <Group gap="xs">
                  <Link to="/projects/$projectId/runs/$runId" params={{ projectId: run.project_id, runId: run.id }}>
                    {nameOf(run)}
                  </Link>
                  <span className="dim" style={{ fontWeight: 400 }}>
                    {place === 0 ? 'first' : 'second'}, <When at={run.created_at} />
                  </span>
                </Group>
              </Table.Th>
            ))}
            <Table.Th w={150} className="dim" fw={500}>
              Difference
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {figuresOf(left, right).map((figure) => (
            <FigureRow key={figure.name} figure={figure} left={left} right={right} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

function FigureRow({ figure, left, right }: { figure: Figure; left: Run; right: Run }) {
  const { name, difference } = figure
  return (
    <Table.Tr data-differs={figure.left !== figure.right}>
      <Table.Th scope="row" className="dim" fw={500}>
        {name}
      </Table.Th>
      <Table.Td className="number">
        <FigureOf name={name} run={left} text={figure.left} />
      </Table.Td>
      <Table.Td className="number">
        <FigureOf name={name} run={right} text={figure.right} />
      </Table.Td>
      <Table.Td className="number dim">{difference ?? 'the same'}</Table.Td>
    </Table.Tr>
  )
}

function FigureOf({ name, run, text }: { name: string; run: Run; text: string }) {
  if (name === 'Status') return <Status of={run.status} title={text} />
  return name === 'Cost' ? <Cost run={run} isLink /> : text
}

/** So many rows are drawn at first; More draws as many again. */
const AT_ONCE = 50

function Steps(props: { left: { run: Run; steps: Step[] }; right: { run: Run; steps: Step[] } }) {
  const { left, right } = props
  const [onlyDifferent, setOnlyDifferent] = useState(false)
  const [most, setMost] = useState(AT_ONCE)
  const rows = useMemo(() => rowsOf(left, right), [left, right])
  const different = rows.filter((row) => differencesOf(row)?.length !== 0)
  const shown = onlyDifferent ? different : rows
  return (
    <section aria-label="Steps">
      <div className={classes.bar}>
        <Title order={2}>Steps</Title>
        <span className="dim" role="status">
          {different.length === 0 ? 'All are the same.' : `${different.length} of ${rows.length} differ.`}
        </span>
        <Switch
          size="xs"
          label="Only differences"
          checked={onlyDifferent}
          onChange={(event) => setOnlyDifferent(event.currentTarget.checked)}
        />
      </div>
      {shown.length === 0 && (
        <Empty>{rows.length === 0 ? 'Neither run has made a step yet.' : 'No step differs.'}</Empty>
      )}
      <ol className={classes.list} aria-label="Aligned steps">
        {shown.slice(0, most).map((row) => (
          <ComparedStep key={`${row.left?.model.seq ?? '–'} ${row.right?.model.seq ?? '–'}`} row={row} />
        ))}
      </ol>
      {shown.length > most && (
        <Group p="md">
          <Button size="xs" variant="default" onClick={() => setMost(most + AT_ONCE)}>
            More
          </Button>
        </Group>
      )}
    </section>
  )
}

function rowsOf(left: { run: Run; steps: Step[] }, right: { run: Run; steps: Step[] }): Row<Turn>[] {
  const one = { run: left.run, turns: turnsOf(left.steps) }
  const other = { run: right.run, turns: turnsOf(right.steps) }
  return alignTurns(withInherited(one, other), withInherited(other, one))
}
