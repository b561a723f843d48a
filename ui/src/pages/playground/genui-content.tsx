// Parts of a layout that show something.
import { Table, Text, Title } from '@mantine/core'
import type { Cell, OfType } from '../../../../src/kernel/genui.ts'
import { lazily } from '../../parts/lazily.tsx'
import { Panel } from '../../parts/panel.tsx'
import classes from './genui.module.css'
import { OpenLink } from './genui-controls.tsx'

const ModelText = lazily(() => import('../../parts/markdown.tsx').then((module) => module.ModelText))

const TONES = { neutral: undefined, good: 'var(--completed)', warning: 'var(--blocked)', bad: 'var(--failed)' }

export function TextPart({ of: { value, style = 'body', tone } }: { of: OfType<'text'> }) {
  const color = tone === undefined ? undefined : TONES[tone]
  if (style === 'title' || style === 'heading') {
    return (
      <Title order={style === 'title' ? 2 : 3} {...(color && { c: color })}>
        {value}
      </Title>
    )
  }
  return (
    <Text className={`${classes.text} ${style === 'note' && !color ? 'dim' : ''}`} {...(color && { c: color })}>
      {value}
    </Text>
  )
}

export function MarkdownPart({ of: { value } }: { of: OfType<'markdown'> }) {
  return (
    <Panel name="The text">
      <ModelText>{value}</ModelText>
    </Panel>
  )
}

export function TablePart({ of: { title, columns, rows, note } }: { of: OfType<'table'> }) {
  return (
    <div>
      {title && <Title order={3}>{title}</Title>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <div className={classes.scroll} tabIndex={0}>
        <Table verticalSpacing={3}>
          <Table.Thead>
            <Table.Tr>
              {columns.map(({ label, align = 'left' }, place) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: columns never change their order
                <Table.Th key={place} ta={align} className="dim" fw={500}>
                  {label}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map(({ cells, open }, row) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows never change their order
              <Table.Tr key={row}>
                {cells.map((cell, place) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns never change their order
                  <Table.Td key={place} ta={columns[place]?.align ?? 'left'} className="number">
                    {open && place === 0 ? <OpenLink {...open}>{written(cell) || 'Open'}</OpenLink> : written(cell)}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {note && (
        <Text size="xs" className="dim">
          {note}
        </Text>
      )}
    </div>
  )
}

function written(cell: Cell): string {
  if (cell === null) return '–'
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no'
  return String(cell)
}

export function DiffPart({ of: { title, changes, unchanged = 0, is_whole: isWhole = true } }: { of: OfType<'diff'> }) {
  return (
    <div>
      {title && <Title order={3}>{title}</Title>}
      <dl className={classes.diff}>
        {changes.map(({ field, kind, before, after }, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: changes never change their order
          <div key={place}>
            <dt>
              {field} <span className="dim">{kind}</span>
            </dt>
            <dd>
              {before !== null && <del>{before}</del>}
              {after !== null && <ins>{after}</ins>}
            </dd>
          </div>
        ))}
      </dl>
      {unchanged > 0 && (
        <Text size="xs" className="dim">
          {unchanged === 1 ? 'One further field stays' : `${unchanged} further fields stay`} as they are.
        </Text>
      )}
      {!isWhole && <Text c="var(--blocked)">The change is too large to be shown whole.</Text>}
    </div>
  )
}
