import { Table } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Run } from '../../../src/kernel/run.ts'
import { firstInputQuery } from '../api/queries.ts'
import { Cost } from './cost.tsx'
import { inputLine, tokens } from './figures.ts'
import { Elapsed, When } from './when.tsx'

/** A run that continues others was given nothing, or a note to continue: the work began with other words. */
function FirstInput({ run }: { run: Run }) {
  const { data: first } = useQuery(firstInputQuery(run.project_id, run))
  return inputLine({ ...run, input: first ?? null })
}

/** A run that another one continues leads there. Nothing is shown for any other run. */
export function Continued({ run }: { run: Run }) {
  if (run.resumed_as === null) return null
  return (
    <Link
      to="/projects/$projectId/runs/$runId"
      params={{ projectId: run.project_id, runId: run.resumed_as }}
      title="Open the run that continues it"
    >
      continued
    </Link>
  )
}

/** The cells of a run that every table of runs has, from the input to the time. */
export function RunCells({ run }: { run: Run }) {
  return (
    <>
      <Table.Td maw={320} className="cut">
        {run.resumed_from === null ? inputLine(run) : <FirstInput run={run} />}
      </Table.Td>
      <Table.Td className="dim">
        {run.trigger.type} <Continued run={run} />
      </Table.Td>
      <Table.Td className="number">{run.step_count}</Table.Td>
      <Table.Td className="number">{tokens(run.usage.total_tokens)}</Table.Td>
      <Table.Td className="number">
        <Cost run={run} />
      </Table.Td>
      <Table.Td>
        <Elapsed from={run.started_at} ms={run.duration} />
      </Table.Td>
      <Table.Td className="dim">
        <When at={run.created_at} />
      </Table.Td>
    </>
  )
}
