import { get, post } from './api.js'
import { announce, button, el, failure, section, showInstant } from './dom.js'
import { durationText, isChangeable } from './flow-time.js'

const ALWAYS = ['hierarchical', 'mesh', 'star']
const rate = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })

/** How work reaches the workers of an adaptive flow, with buttons to switch. Nothing where the flow has no such part. */
export function flowTopology({ path, isMember }) {
  const problem = el('div')
  const current = el('span', { class: 'badge live' })
  const buttons = el('div', { class: 'buttons' })
  const facts = el('dl', { class: 'facts' })
  const element = section('Topology', current, problem, buttons, facts)
  element.hidden = true
  let shown = ''
  let last = null
  return { element, reload, update }

  async function reload(run) {
    const found = await get(`${path}/topology`).catch(() => null)
    if (found && found.current !== null) show(found, run)
  }

  /** What the run allows is known sooner than what is measured of it. */
  function update(run) {
    if (last) show(last, run)
  }

  function show(found, run) {
    element.hidden = false
    last = found
    const key = JSON.stringify([found, isChangeable(run)])
    if (key === shown) return
    shown = key
    current.textContent = found.current
    showButtons(found, run)
    facts.replaceChildren(
      ...factsOf(found)
        .filter(([, content]) => content.length > 0)
        .flatMap(([name, content]) => [el('dt', {}, name), el('dd', {}, content)]),
    )
  }

  function showButtons(found, run) {
    if (!isMember || !isChangeable(run)) return buttons.replaceChildren()
    const isCustomKnown =
      found.current === 'custom' || found.history.some(({ from, to }) => [from, to].includes('custom'))
    const others = [...ALWAYS, ...(isCustomKnown ? ['custom'] : [])].filter((each) => each !== found.current)
    // The button that was pressed may be among those that go: the focus stays in this place.
    const hadFocus = buttons.contains(document.activeElement)
    buttons.replaceChildren(...others.map((each) => button(`Switch to ${each}`, () => change(each, run))))
    if (hadFocus) buttons.querySelector('button').focus()
  }

  async function change(topology, run) {
    try {
      const found = await post(`${path}/topology`, { topology })
      problem.replaceChildren()
      announce(found.current === topology ? `The topology is ${topology}.` : 'The switch will come into force soon.')
      show(found, run)
    } catch (error) {
      problem.replaceChildren(failure(error, () => change(topology, run)))
    }
  }
}

function factsOf({ history, handovers, by_topology, recommendation }) {
  return [
    [
      'Switches',
      history.map(({ from, to, reason, at, switch_ms, moved }) =>
        el('p', {}, `${from} → ${to}: ${reason} · ${moved} moved in ${switch_ms} ms · `, showInstant(at)),
      ),
    ],
    ['Handovers', handovers.length === 0 ? [] : [String(handovers.length)]],
    [
      'Measured',
      Object.entries(by_topology).map(([name, { tasks, throughput, wait, duration }]) =>
        el(
          'p',
          {},
          `${name}: ${tasks} tasks, ${rate.format(throughput)} a second, wait ${durationText(wait)}, work ${durationText(duration)}`,
        ),
      ),
    ],
    ['Best', recommendation === null ? [] : [`${recommendation.topology}: ${recommendation.reason}`]],
  ]
}
