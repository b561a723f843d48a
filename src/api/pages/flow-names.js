// The name that people would give a flow run. One that was started without a stored flow has no name of its own; what
// its tasks are called says what it is about.
import { get } from './api.js'
import { el, shortId } from './dom.js'

const TASKS_NAMED = 3

export function createFlowNames({ project }) {
  const flows = new Map()
  return { nameOf }

  /** The name of its flow is put in its place when it is known. */
  function nameOf(run) {
    const place = el('span', { class: 'flow-name' }, 'Flow run ', shortId(run.id))
    if (run.flow_id === null) return place
    if (!flows.has(run.flow_id)) flows.set(run.flow_id, get(`/api/projects/${project.id}/flows/${run.flow_id}`))
    flows.get(run.flow_id).then(
      (flow) => place.replaceChildren(flow.name),
      () => flows.delete(run.flow_id),
    )
    return place
  }
}

export const patternText = ({ pattern }) => pattern.replaceAll('_', '-')

/** The first tasks that gave something. */
export function aboutText({ results }) {
  const names = results.truncated === true ? [] : Object.keys(results)
  const rest = names.length - TASKS_NAMED
  return names.slice(0, TASKS_NAMED).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}
