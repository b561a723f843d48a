import { post } from './api.js'
import { confirm } from './dialogs.js'
import { announce, button } from './dom.js'

const MOST_AT_ONCE = 10

const pathOf = (project, run) => `/api/projects/${project.id}/flow-runs/${run.id}`

/** `fail` is told what went wrong, and how to try again. */
export async function cancelFlow({ project, run, onChange, fail }) {
  const text = 'Nothing new begins. What is under way may end; what it gave is kept.'
  const words = { title: 'Cancel this flow run?', text, action: 'Cancel the flow', refusal: 'Keep it running' }
  if (!(await confirm(words))) return
  const cancel = async () => {
    try {
      await post(`${pathOf(project, run)}/cancel`)
      announce('The flow run is being cancelled.')
      onChange()
    } catch (error) {
      fail(error, cancel)
    }
  }
  await cancel()
}

/** As many again as there are, within reason. */
export function addWorkersButton({ project, run, onChange, fail }) {
  const add = Math.min(run.workers, MOST_AT_ONCE)
  const send = async () => {
    try {
      const { workers } = await post(`${pathOf(project, run)}/workers`, { add })
      announce(`The flow run has ${workers} workers.`)
      onChange()
    } catch (error) {
      fail(error, send)
    }
  }
  return button(add === 1 ? 'Add 1 worker' : `Add ${add} workers`, send)
}
