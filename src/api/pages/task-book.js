// Knows the tasks of a flow run: what the API said, and what its events have said since. Events may be told
// again, from the first one on: what is known already stays.

const PAGES = 5
const PAGE = 200

export function createTaskBook({ read }) {
  const tasks = new Map()
  return { all: () => [...tasks.values()], find: (id) => tasks.get(id), load, apply }

  /** The first thousand; of more nobody reads a table. */
  async function load() {
    let cursor = null
    let page = 0
    do {
      const { items, next_cursor } = await read({ limit: PAGE, cursor })
      for (const task of items) note({ ...task, stage: stageOf(task) })
      cursor = next_cursor
    } while (cursor !== null && ++page < PAGES)
  }

  /** Events may have come while this was read. */
  function note(task) {
    if ((tasks.get(task.id)?.stage ?? 0) <= task.stage) tasks.set(task.id, task)
  }

  /** Answers the task that is another one now, or null. */
  function apply({ event, task_id: id, at, name, attempt, worker, agent, error }) {
    const status = STATUS_AFTER[event]
    if (status === undefined) return null
    const known = tasks.get(id) ?? { ...UNKNOWN, id, name: name ?? id, stage: 0 }
    // A skipped one has no attempt, and is not tried again.
    const stage = status === 'skipped' ? Number.POSITIVE_INFINITY : 2 * attempt + (status === 'running' ? 0 : 1)
    if (stage <= known.stage) return null
    const isRunning = status === 'running'
    const task = {
      ...known,
      ...{ stage, status, attempts: Math.max(known.attempts, attempt ?? 0), error: status === 'failed' ? error : null },
      worker: worker ?? known.worker ?? agent ?? null,
      start_at: known.start_at ?? (isRunning ? at : null),
      end_at: isRunning || (known.start_at === null && status === 'skipped') ? null : at,
    }
    tasks.set(id, task)
    return task
  }
}

const STATUS_AFTER = {
  'task.started': 'running',
  'task.completed': 'completed',
  'task.failed': 'failed',
  'task.skipped': 'skipped',
}
const UNKNOWN = { status: 'pending', worker: null, attempts: 0, start_at: null, end_at: null, error: null }

/** Grows with everything that can happen to a task, so that what is older is known by it. */
function stageOf({ status, attempts }) {
  if (status === 'pending') return 0
  if (status === 'skipped') return Number.POSITIVE_INFINITY
  return 2 * attempts + (status === 'running' ? 0 : 1)
}
