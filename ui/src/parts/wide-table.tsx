import { Table } from '@mantine/core'
import type { ReactNode } from 'react'

/** A table that scrolls sideways in a narrow window. It takes the focus, so that keys can scroll it. */
export function WideTable({ name, minWidth, children }: { name: string; minWidth: number; children: ReactNode }) {
  return (
    // Hidden texts are placed relative to the table; otherwise they would make the whole page wider.
    <Table.ScrollContainer type="native" minWidth={minWidth} pos="relative" tabIndex={0} role="group" aria-label={name}>
      <Table verticalSpacing={5} highlightOnHover>
        {children}
      </Table>
    </Table.ScrollContainer>
  )
}
