// The plan that a queen made: her subtasks, how each stands, and what each waits for.
import { useQuery } from '@tanstack/react-query'
import { runQuery } from '../../api/queries.ts'
import { Status } from '../../parts/status.tsx'
import classes from './flow-page.module.css'
import { readPlan, statusOfSubtask } from './read-plan.ts'
import { Part } from './task-details.tsx'
import { useFlowStore, useTotals } from './use-flow-store.ts'

export function QueenPlan({ projectId, onChoose }: { projectId: string; onChoose: (taskId: string) => void }) {
  const store = useFlowStore()
  useTotals()
  const plans = [...store.tasks()].filter(({ id, run_id }) => /\/plan \d+/.test(id) && run_id !== null)
  const last = plans.at(-1)
  const run = useQuery({ ...runQuery(projectId, last?.run_id ?? ''), enabled: last !== undefined })
  const subtasks = readPlan(run.data?.summary ?? null)
  if (!last || subtasks.length === 0) return null
  const [, parent = '', round = ''] = /^(.*)\/plan (\d+)/.exec(last.id) ?? []
  const tasks = [...store.tasks()]
  const numberOf = (id: string): number => subtasks.findIndex((subtask) => subtask.id === id) + 1
  return (
    <Part name={round === '1' ? "Queen's plan" : `Queen's plan, round ${round}`}>
      <ol className={classes.list} aria-label="Queen's plan">
        {subtasks.map(({ id, title, depends_on: before }) => {
          const own = tasks.filter((task) => task.id.startsWith(`${parent}/do ${round} ${id} `))
          return (
            <li key={id}>
              <button
                type="button"
                className={classes.choice}
                disabled={own.length === 0}
                onClick={() => own[0] && onChoose(own[0].id)}
              >
                {title}
              </button>{' '}
              <Status of={statusOfSubtask(own)} size={12} />
              {before.length > 0 && <div className="dim">after {before.map(numberOf).join(', ')}</div>}
            </li>
          )
        })}
      </ol>
    </Part>
  )
}
