import { agentsPanel } from './agents-panel.js'
import { get, post } from './api.js'
import { auditPanel } from './audit-panel.js'
import { confirm } from './dialogs.js'
import { announce, button, el, failure, focusOn, showInstant, skeleton } from './dom.js'
import { flowsPanel } from './flows-panel.js'
import { inboxPanel } from './inbox-panel.js'
import { keysPanel } from './keys-panel.js'
import { membersPanel } from './members-panel.js'
import { objectsPanel } from './objects-panel.js'
import { haltedBadge, projectAddress } from './projects.js'

// Which panels there are, and who sees them: the API would refuse the rest.
const PANELS = {
  agents: { label: 'Agents', isForAdmins: false, make: agentsPanel },
  flows: { label: 'Flows', isForAdmins: false, make: flowsPanel },
  inbox: { label: 'Inbox', isForAdmins: false, make: inboxPanel },
  objects: { label: 'Objects', isForAdmins: false, make: objectsPanel },
  keys: { label: 'Keys', isForAdmins: true, make: keysPanel },
  members: { label: 'Members', isForAdmins: false, make: membersPanel },
  audit: { label: 'Audit', isForAdmins: true, make: auditPanel },
}

/** One project: its off switch, and one of its panels; `parts` of the address lead further into it. */
export function projectView({ me, id, panel, parts, onChange }) {
  const element = el('section', { class: 'project', 'aria-label': 'Project' }, skeleton(5))
  load({ takeFocus: true })
  return element

  async function load({ takeFocus }) {
    try {
      show(await get(`/api/projects/${encodeURIComponent(id)}`), takeFocus)
    } catch (error) {
      element.replaceChildren(failure(error, () => load({ takeFocus: true })))
    }
  }

  function show(project, takeFocus) {
    const role = me.instance_admin ? 'admin' : (me.projects.find((one) => one.id === project.id)?.role ?? 'viewer')
    const isAdmin = role === 'admin'
    const shown = Object.entries(PANELS).filter(([, { isForAdmins }]) => isAdmin || !isForAdmins)
    const [name, chosen] = shown.find(([key]) => key === panel) ?? shown[0]
    const title = el('h1', {}, project.name)
    element.replaceChildren(
      el('div', { class: 'title' }, title, haltedBadge(project), isAdmin ? haltButton(project) : null),
      el(
        'p',
        { class: 'dim' },
        `Your role: ${role} · created `,
        showInstant(project.created_at),
        ' · ',
        el('code', {}, project.id),
      ),
      el(
        'nav',
        { class: 'tabs', 'aria-label': 'Parts of the project' },
        shown.map(([key, { label }]) =>
          el('a', { href: projectAddress(project.id, key), 'aria-current': key === name ? 'page' : null }, label),
        ),
      ),
      chosen.make({ me, project, isAdmin, isMember: role !== 'viewer', parts: name === panel ? parts : [] }),
    )
    document.title = `${project.name} · Muster`
    if (!takeFocus) return
    const wanted = element.querySelector('[autofocus]')
    if (wanted) wanted.focus()
    else focusOn(title)
  }

  function haltButton(project) {
    const isHalted = project.halted_at !== null
    return button(isHalted ? 'Let it go on…' : 'Halt…', () => setHalted(project, !isHalted), {
      class: isHalted ? '' : 'danger',
    })
  }

  async function setHalted(project, shouldHalt) {
    const isSure = await confirm(
      shouldHalt
        ? {
            title: `Halt ${project.name}?`,
            text: 'Everything in the project stops until you let it go on.',
            action: 'Halt',
          }
        : {
            title: `Let ${project.name} go on?`,
            text: 'Its agents and schedules work again.',
            action: 'Go on',
            isDanger: false,
          },
    )
    if (!isSure) return
    try {
      await post(`/api/projects/${project.id}/${shouldHalt ? 'halt' : 'unhalt'}`)
      announce(shouldHalt ? 'The project is halted.' : 'The project goes on.')
      await load({ takeFocus: true })
      onChange()
    } catch (error) {
      element.prepend(failure(error, () => setHalted(project, shouldHalt)))
    }
  }
}
