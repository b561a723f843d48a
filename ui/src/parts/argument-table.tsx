// The arguments of a call, one a row. A person decides by them, so nothing in a value may hide.
import { Table } from '@mantine/core'
import { isRecord } from '../../../src/kernel/is-record.ts'
import classes from './argument-table.module.css'
import { oneLine } from './figures.ts'
import { showMarks } from './property-diff.ts'

/** A longer value is folded. */
const MAX_OPEN = 300
const MAX_SUMMARY = 120
const MAX_LINE = 60

export function ArgumentTable({ args, name = 'Arguments' }: { args: unknown; name?: string }) {
  const rows = isRecord(args) ? Object.entries(args) : [['value', args] as const]
  if (rows.length === 0) return <p className="dim">Without arguments.</p>
  return (
    <Table className={classes.table ?? ''} aria-label={name} verticalSpacing={3}>
      <Table.Thead className="visually-hidden">
        <Table.Tr>
          <Table.Th scope="col">Argument</Table.Th>
          <Table.Th scope="col">Value</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(([argument, value]) => (
          <Table.Tr key={argument}>
            <Table.Th scope="row">{showMarks(argument)}</Table.Th>
            <Table.Td>
              <ShownValue of={value} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}

/** A text as it is, all else as JSON; long ones behind their beginning. */
export function ShownValue({ of: value }: { of: unknown }) {
  const text = showMarks(typeof value === 'string' ? value : jsonOf(value))
  if (text.length <= MAX_OPEN) return <span className={classes.value}>{text}</span>
  return (
    <details>
      <summary className={classes.value}>{showMarks(oneLine(value, MAX_SUMMARY))}</summary>
      <div className={classes.value}>{text}</div>
    </details>
  )
}

/** Small values take one line. */
function jsonOf(value: unknown): string {
  const line = JSON.stringify(value) ?? ''
  return line.length <= MAX_LINE ? line : (JSON.stringify(value, null, 2) ?? '')
}
