// Names for the ids that the API answers with. A name is put in its place when it is known; until then, and where there
// is none, the end of the id stands there.
import { get } from './api.js'
import { visible } from './diff.js'
import { el, shortId } from './dom.js'
import { projectAddress } from './projects.js'

export function createNames({ me, project }) {
  const path = `/api/projects/${project.id}`
  const agents = new Map()
  let people = null
  return { agent, author, person }

  /** `runId` is the run in which an agent acted. */
  function author({ type, id }, runId = null) {
    return type === 'agent' && id !== null ? agent(id, runId) : person(id)
  }

  function agent(id, runId = null) {
    const place = el('span', {}, 'agent ', shortId(id))
    if (!agents.has(id)) agents.set(id, get(`${path}/agents/${encodeURIComponent(id)}`))
    agents.get(id).then(
      ({ name }) => place.replaceChildren(el('a', { href: projectAddress(project.id, 'agents', id) }, name)),
      (error) => error.status === 404 && nameFromRun(place, runId),
    )
    return place
  }

  /** Supervisors and specialists are no stored agents: their runs have none, and say which part they play. */
  function nameFromRun(place, runId) {
    const isGone = () => place.prepend('deleted ')
    if (runId === null) return isGone()
    return get(`${path}/runs/${encodeURIComponent(runId)}`).then(
      ({ agent_id, trigger }) => (agent_id === null ? place.replaceChildren(visible(trigger.node)) : isGone()),
      isGone,
    )
  }

  function person(id) {
    if (id === null) return 'the instance admin'
    if (id === me.id) return 'you'
    const place = el('span', {}, shortId(id))
    people ??= get(`${path}/members?limit=200`)
    people.then(
      ({ items }) => {
        const member = items.find((each) => each.user_id === id)
        if (member) place.replaceChildren(member.name ?? member.email)
      },
      () => {},
    )
    return place
  }
}
