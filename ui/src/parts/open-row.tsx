import { Table, type TableTrProps } from '@mantine/core'
import type { MouseEvent } from 'react'

/** A row of a table that follows its first link, wherever it is clicked. Keys and screen readers use the link itself. */
export function OpenRow(props: TableTrProps) {
  return <Table.Tr {...props} className="opens" onClick={follow} />
}

function follow({ target, currentTarget, ctrlKey, metaKey, shiftKey }: MouseEvent<HTMLTableRowElement>): void {
  const isForOther = (target as Element).closest('a, button, input, label') !== null // clicks go to elements
  const isSelecting = window.getSelection()?.isCollapsed === false
  if (isForOther || isSelecting) return
  const click = new window.MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey })
  currentTarget.querySelector('a')?.dispatchEvent(click)
}
