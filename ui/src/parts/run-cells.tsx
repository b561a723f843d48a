import { Table } from '@mantine/core'
import type { Run } from '../../../src/kernel/run.ts'
import { Cost } from './cost.tsx'
import { inputLine, tokens } from './figures.ts'
import { Elapsed, When } from './when.tsx'

/** The cells of a run that every table of runs has, from the input to the time. */
export function RunCells({ run }: { run: Run }) {
  return (
    <>
      <Table.Td maw={320} className="cut">
        {inputLine(run)}
      </Table.Td>
      <Table.Td className="dim">{run.trigger.type}</Table.Td>
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
