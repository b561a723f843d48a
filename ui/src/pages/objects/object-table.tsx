import { Table } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { GraphObject } from '../../../../src/kernel/object.ts'
import { oneLine } from '../../parts/figures.ts'
import { When } from '../../parts/when.tsx'
import { Actor } from './actor.tsx'
import { columnsOf, objectName } from './object-words.ts'

/** Objects of one type have a column for each of their properties; others have their properties in one line. */
export function ObjectTable(props: { projectId: string; objects: readonly GraphObject[]; isOneType: boolean }) {
  const { projectId, objects, isOneType } = props
  const columns = isOneType ? columnsOf(objects) : []
  const heads = [isOneType ? 'Key' : 'Name', ...(isOneType ? columns : ['Type', 'Properties']), 'Changed', 'By']
  return (
    <Table.ScrollContainer minWidth={640}>
      <Table highlightOnHover verticalSpacing={5} aria-label="Objects">
        <Table.Thead>
          <Table.Tr>
            {heads.map((name, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a property may be called like another column
              <Table.Th key={`${place} ${name}`} className="dim" fw={500}>
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {objects.map((object) => (
            <Table.Tr key={object.id}>
              <Table.Td maw={220} className="cut">
                <Link to="/projects/$projectId/objects/$objectId" params={{ projectId, objectId: object.id }}>
                  {objectName(object)}
                </Link>
              </Table.Td>
              {isOneType ? (
                columns.map((name) => (
                  <Table.Td key={name} maw={220} className="cut number">
                    {Object.hasOwn(object.properties, name) ? oneLine(object.properties[name], 80) : ''}
                  </Table.Td>
                ))
              ) : (
                <>
                  <Table.Td>{oneLine(object.type, 40)}</Table.Td>
                  <Table.Td maw={380} className="cut dim">
                    {oneLine(object.properties)}
                  </Table.Td>
                </>
              )}
              <Table.Td className="dim">
                <When at={object.updated_at} />
              </Table.Td>
              <Table.Td className="dim">
                <Actor projectId={projectId} type={object.actor_type} id={object.actor_id} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}
