// The keys of the tree.
import type { Row } from './tree.ts'
import { placeOf } from './tree.ts'

export type TreeCommand =
  | { type: 'select'; path: string }
  | { type: 'fold'; path: string; isFolded: boolean }
  | { type: 'edit' }
  | { type: 'up' | 'down' | 'out' | 'in' | 'duplicate' | 'remove' }

interface Press {
  key: string
  altKey: boolean
  ctrlKey: boolean
  metaKey: boolean
}

const WITH_ALT: Readonly<Record<string, 'up' | 'down' | 'out' | 'in'>> = {
  ArrowUp: 'up',
  ArrowDown: 'down',
  ArrowLeft: 'out',
  ArrowRight: 'in',
}

/** Null: the key means nothing here. */
export function commandOf(press: Press, rows: readonly Row[], selected: string): TreeCommand | null {
  const index = rows.findIndex(({ path }) => path === selected)
  const row = rows[index]
  const at = (place: number): TreeCommand | null => {
    const to = rows[Math.max(0, Math.min(rows.length - 1, place))]
    return to ? { type: 'select', path: to.path } : null
  }
  if (press.altKey) {
    const type = WITH_ALT[press.key]
    return type === undefined ? null : { type }
  }
  if (press.ctrlKey || press.metaKey) {
    return press.key.toLowerCase() === 'd' ? { type: 'duplicate' } : null
  }
  switch (press.key) {
    case 'ArrowDown':
      return at(index + 1)
    case 'ArrowUp':
      return at(index - 1)
    case 'Home':
      return at(0)
    case 'End':
      return at(rows.length - 1)
    case 'ArrowRight':
      if (!row?.hasChildren) return null
      return row.isFolded ? { type: 'fold', path: row.path, isFolded: false } : at(index + 1)
    case 'ArrowLeft': {
      if (row?.hasChildren && !row.isFolded) return { type: 'fold', path: row.path, isFolded: true }
      const around = placeOf(selected)?.parent
      return around === undefined ? null : { type: 'select', path: around }
    }
    case 'Delete':
    case 'Backspace':
      return { type: 'remove' }
    case 'Enter':
      return { type: 'edit' }
    default:
      return null
  }
}
