import { cutText } from '../kernel/cut-text.ts'
import { LONGEST_TEXT, type OfType } from '../kernel/genui.ts'
import { isRecord } from '../kernel/is-record.ts'
import type { SuggestedCall } from '../kernel/task.ts'
import { asLabel, visible } from './plain-text.ts'

/** The most arguments that a table shows. */
const MAX_ARGUMENTS = 200

/** The call with its arguments, one a row. A person decides by this table, so a cut is told. */
export function showCall({ tool, args }: SuggestedCall): { table: OfType<'table'>; isWhole: boolean } {
  const all = isRecord(args) ? Object.entries(args) : [['arguments', args] as const]
  let isWhole = all.length <= MAX_ARGUMENTS
  const cell = (text: string): string => {
    if (text.length > LONGEST_TEXT) isWhole = false
    return cutText(text, LONGEST_TEXT, '…')
  }
  const rows = all
    .slice(0, MAX_ARGUMENTS)
    .map(([name, value]) => ({ cells: [cell(visible(name)), cell(visible(JSON.stringify(value, null, 2) ?? 'null'))] }))
  const columns = [{ label: 'Argument' }, { label: 'Value' }]
  return { table: { type: 'table', id: 'call', title: asLabel(visible(`Call ${tool}`)), columns, rows }, isWhole }
}
