// Names for the ids that the API answers with. A name is put in its place when it is known; until then, and where there
// is none, the end of the id stands there.
import { get } from './api.js'
import { el, shortId } from './dom.js'
import { projectAddress } from './projects.js'

export function createNames({ me, project }) {
  const path = `/api/projects/${project.id}`
  const agents = new Map()
  let people = null
  return { agent, author, person }

  function author({ type, id }) {
    return type === 'agent' && id !== null ? agent(id) : person(id)
  }

  function agent(id) {
    const place = el('span', {}, 'agent ', shortId(id))
    if (!agents.has(id)) agents.set(id, get(`${path}/agents/${encodeURIComponent(id)}`))
    agents.get(id).then(
      ({ name }) => place.replaceChildren(el('a', { href: projectAddress(project.id, 'agents', id) }, name)),
      (error) => error.status === 404 && place.prepend('deleted '),
    )
    return place
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
