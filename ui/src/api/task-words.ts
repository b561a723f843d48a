// The words of tasks. The kernel has them beside its schemas, which would bring a validator into the page.
import type { SuggestedCall, SuggestedChange, Task } from '../../../src/kernel/task.ts'

/** True of statuses for which nobody waits any more. */
const OVER: Record<Task['status'], boolean> = {
  pending: false,
  'in-progress': false,
  blocked: false,
  completed: true,
  failed: true,
  rejected: true,
  cancelled: true,
}

export const isTaskOver = ({ status }: Pick<Task, 'status'>): boolean => OVER[status]

/** Work is never rejected. */
export const workStatuses = Object.keys(OVER).filter((status) => status !== 'rejected')

export const priorities: readonly Task['priority'][] = ['low', 'medium', 'high', 'urgent']

export const changeNames: Record<SuggestedChange['op'], string> = {
  create: 'Create',
  update: 'Update',
  delete: 'Delete',
  relate: 'Relate',
}

/** The call that a suggestion is about; null if it is about objects. */
export function suggestedCall({ changes }: Pick<Task, 'changes'>): SuggestedCall | null {
  const [only] = changes ?? []
  return only?.op === 'call' ? only : null
}

/** The changes of objects that a suggestion proposes. */
export const objectChanges = ({ changes }: Pick<Task, 'changes'>): SuggestedChange[] =>
  (changes ?? []).filter((change) => change.op !== 'call')
