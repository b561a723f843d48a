// Work that cannot be continued and would begin anew: every call made so far, and the decision.
import { Button, Group, Table } from '@mantine/core'
import { isRecord } from '../../../../src/kernel/is-record.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { ShownValue } from '../../parts/argument-table.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { When } from '../../parts/when.tsx'
import { WideTable } from '../../parts/wide-table.tsx'
import type { CardProps } from './inbox-card.tsx'

export function AnewBody({ task, isOpen, mayDecide, decisions }: CardProps & { mayDecide: boolean }) {
  if (!isOpen) return null
  const calls = callsOf(task)
  const isBusy = decisions.busy.has(task.id)
  const decide = (result: 'again' | 'stop', words: string): void =>
    void decisions.settle(task, { status: 'completed', result }, words)
  return (
    <>
      <p>
        The work cannot be continued and would begin anew.{' '}
        {calls.length === 1
          ? 'This call was made, and may then be made a second time:'
          : 'These calls were made, and may then be made a second time:'}
      </p>
      <WideTable name="Calls so far" minWidth={620}>
        <Table.Thead>
          <Table.Tr>
            {['Tool', 'Arguments', 'Result', 'Key', 'Time'].map((name) => (
              <Table.Th key={name} className="dim" fw={500}>
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {calls.map(({ tool, args, result, key, at }, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the calls never move, and one key may stand for two
            <Table.Tr key={place} style={{ verticalAlign: 'top' }}>
              <Table.Td className="mono">{showMarks(String(tool))}</Table.Td>
              <Table.Td>
                <ShownValue of={args} />
              </Table.Td>
              <Table.Td>{result == null ? 'unknown' : <ShownValue of={result} />}</Table.Td>
              <Table.Td className="mono" style={{ overflowWrap: 'anywhere', minWidth: 120 }}>
                {showMarks(String(key ?? ''))}
              </Table.Td>
              <Table.Td>
                <When at={typeof at === 'string' ? at : null} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </WideTable>
      <p className="dim">
        Begin anew: the agent starts over and is told these calls. Stop: nothing more is called, and the work stays
        blocked.
      </p>
      {mayDecide && (
        <Group gap="xs">
          <Button
            size="xs"
            variant="default"
            loading={isBusy}
            onClick={() => decide('again', 'The work begins anew and is told the calls.')}
          >
            Begin anew
          </Button>
          <Button
            size="xs"
            variant="default"
            loading={isBusy}
            onClick={() => decide('stop', 'The work does not begin anew.')}
          >
            Stop
          </Button>
        </Group>
      )}
    </>
  )
}

/** Metadata is not checked by the API, so each call is read field by field. */
const callsOf = ({ metadata }: Task): Record<string, unknown>[] =>
  Array.isArray(metadata.calls) ? metadata.calls.filter(isRecord) : []
