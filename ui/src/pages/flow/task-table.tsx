// Every task in a table of which only the rows in view exist.
import { TextInput } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { memo, useMemo, useState } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { cost, tokens } from '../../parts/figures.ts'
import { Status } from '../../parts/status.tsx'
import { useSteadyOrder } from '../../parts/steady-order.ts'
import { useVirtualRows } from '../../parts/use-virtual-rows.ts'
import { Elapsed, When } from '../../parts/when.tsx'
import { shownStatus } from './flow-store.ts'
import classes from './task-table.module.css'
import { useFlowStore, useTask } from './use-flow-store.ts'

const ROW = 30
const COLUMNS = ['Task', 'Status', 'Worker', 'Attempts', 'Started', 'Took', 'Tokens', 'Cost', 'Run']

interface Props {
  projectId: string
  run: FlowRun
  ids: readonly string[]
  chosen: string | undefined
  onChoose: (id: string) => void
}

export function TaskTable({ projectId, run, ids, chosen, onChoose }: Props) {
  const store = useFlowStore()
  const [sought, setSought] = useState('')
  const found = useMemo(() => {
    const words = sought.trim().toLowerCase()
    const isFound = (id: string): boolean => {
      const task = store.task(id)
      return [task?.name, id, task?.worker].some((text) => text?.toLowerCase().includes(words))
    }
    return words === '' ? ids : ids.filter(isFound)
  }, [store, ids, sought])
  const { order, hold } = useSteadyOrder(found)
  const { items, before, after, scroll } = useVirtualRows({
    count: order.length,
    rowHeight: ROW,
    keyOf: (index) => order[index] ?? String(index),
  })
  return (
    <div className={classes.frame}>
      <div className={classes.tools}>
        <TextInput
          size="xs"
          aria-label="Find a task"
          placeholder="Find a task or worker"
          value={sought}
          onChange={(event) => setSought(event.currentTarget.value)}
        />
        <span className="dim number" role="status">
          {order.length === run.progress.total || sought === '' ? `${order.length} tasks` : `${order.length} found`}
        </span>
      </div>
      <div {...scroll} className={classes.rows}>
        <table className={classes.table} aria-label="Tasks" aria-rowcount={order.length + 1}>
          <thead>
            <tr>
              {COLUMNS.map((name) => (
                <th key={name} className="dim">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody {...hold}>
            {before > 0 && <Gap height={before} />}
            {items.map(({ index, key }) => (
              <TaskLine
                key={key}
                place={index + 2}
                projectId={projectId}
                id={order[index] ?? ''}
                isChosen={order[index] === chosen}
                onChoose={onChoose}
              />
            ))}
            {after > 0 && <Gap height={after} />}
          </tbody>
        </table>
      </div>
    </div>
  )
}

/** The rows that are out of view. */
const Gap = ({ height }: { height: number }) => (
  <tr aria-hidden>
    <td colSpan={COLUMNS.length} style={{ height }} />
  </tr>
)

interface RowProps {
  place: number
  projectId: string
  id: string
  isChosen: boolean
  onChoose: (id: string) => void
}

const TaskLine = memo(function TaskLine({ place, projectId, id, isChosen, onChoose }: RowProps) {
  const task = useTask(id)
  if (!task) return null
  const { start_at: start, end_at: end, usage, run_id: runId } = task
  const status = shownStatus(task)
  return (
    <tr
      className={classes.row}
      data-task={id}
      data-status={status}
      data-chosen={isChosen || undefined}
      aria-rowindex={place}
    >
      <td className="cut">
        <button
          type="button"
          className={`cut ${classes.name}`}
          aria-current={isChosen ? 'true' : undefined}
          onClick={() => onChoose(id)}
        >
          {task.name}
        </button>
      </td>
      <td>
        <Status of={status} {...(task.error !== null && { title: task.error })} />
      </td>
      <td className="cut">{task.worker}</td>
      <td className="number">{task.attempts || ''}</td>
      <td className="dim">{start !== null && <When at={start} />}</td>
      <td>
        {start !== null && <Elapsed from={start} ms={end === null ? null : Date.parse(end) - Date.parse(start)} />}
      </td>
      <td className="number">{usage && tokens(usage.total_tokens)}</td>
      <td className="number">{usage && cost(usage.cost_usd)}</td>
      <td>
        {runId !== null && (
          <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId }} aria-label={`Run of ${task.name}`}>
            Run
          </Link>
        )}
      </td>
    </tr>
  )
})
