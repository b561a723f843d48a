import { get } from './api.js'
import { el, failure, section, skeleton } from './dom.js'
import { flowCard } from './flow-card.js'
import { flowDetail } from './flow-detail.js'
import { createFlowNames } from './flow-names.js'
import { flowStart } from './flow-start.js'
import { isActive } from './flow-time.js'
import { followFlow, keepFresh } from './keep-fresh.js'

const EVERY_MS = 1_000
const RECENT = 20
/** A browser has six connections to one address, and other tabs want some: the others are asked about every second. */
const MOST_FOLLOWED = 2

/** The project's flow runs, those under way first, or one of them. */
export function flowsPanel(context) {
  return context.parts.length > 0 ? flowDetail({ ...context, id: context.parts[0] }) : flowList(context)
}

function flowList({ project, isMember }) {
  const path = `/api/projects/${project.id}`
  const names = createFlowNames({ project })
  const problem = el('div')
  const active = flowRows('Active flow runs', 'Nothing is under way.')
  const recent = flowRows('Recent flow runs, newest first', 'No flow has ended yet.')
  const element = el(
    'div',
    { class: 'panel' },
    isMember ? flowStart({ project }) : null,
    problem,
    section('Active', null, active.element),
    section('Recent', null, recent.element),
  )
  const cards = new Map()
  const followed = new Map()
  let ended = []
  let endedKey = null
  const fresh = keepFresh(element, { work: refresh, everyMs: EVERY_MS, onRest: () => follow([]) })
  return element

  async function refresh() {
    try {
      const [running, queued, newest, alerts] = await Promise.all(
        ['flow-runs?status=running&limit=50', 'flow-runs?status=queued&limit=50', 'flow-runs?limit=1', ALERTS].map(
          async (list) => (await get(`${path}/${list}`)).items,
        ),
      )
      const under = [...running, ...queued].toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))
      await readEnded([newest[0]?.id, ...under.map(({ id }) => id)].join())
      show(under, alerts)
      follow(under)
      problem.replaceChildren()
    } catch (error) {
      if (cards.size > 0) error.message = `${error.message} What is shown is old.`
      problem.replaceChildren(failure(error, fresh.poke))
    }
  }

  /** The recent ones change only where one was started or has ended. */
  async function readEnded(key) {
    if (key === endedKey) return
    const { items } = await get(`${path}/flow-runs?limit=${RECENT}`)
    ended = items.filter((run) => !isActive(run))
    endedKey = key
  }

  function show(under, alerts) {
    const byRun = Map.groupBy(alerts, (alert) => alert.flow_run_id)
    const rest = ended.filter((run) => !under.some(({ id }) => id === run.id))
    for (const run of [...under, ...rest]) {
      if (!cards.has(run.id)) cards.set(run.id, flowCard({ project, run, names, isMember, onChange: fresh.poke }))
      cards.get(run.id).update(run, byRun.get(run.id) ?? [])
    }
    const elementOf = ({ id }) => cards.get(id).element
    // An element that somebody points at or is about to press stays where it is.
    const held = rest.map(elementOf).filter((card) => active.has(card) && card.matches(':hover, :focus-within'))
    active.show([...under.map(elementOf), ...held])
    recent.show(rest.map(elementOf).filter((card) => !held.includes(card)))
    const shown = new Set([...under, ...rest].map(({ id }) => id))
    for (const id of cards.keys()) if (!shown.has(id)) cards.delete(id)
  }

  function follow(under) {
    const wanted = under.slice(0, MOST_FOLLOWED).map(({ id }) => id)
    for (const [id, events] of followed) {
      if (wanted.includes(id) && events.isOpen()) continue
      events.close()
      followed.delete(id)
    }
    for (const id of wanted) {
      if (!followed.has(id)) followed.set(id, followFlow(`${path}/flow-runs/${id}`, fresh.poke))
    }
  }
}

const ALERTS = 'alerts?acked=false&limit=100'

function flowRows(label, empty) {
  const rows = el('ul', { class: 'rows flows', 'aria-label': label })
  const below = el('div', {}, skeleton(2))
  return { element: el('div', { class: 'list' }, rows, below), has: (card) => card.parentElement === rows, show }

  /** Only what stands elsewhere than it should is moved: a row that is moved loses the focus. */
  function show(cards) {
    for (const old of [...rows.children]) if (!cards.includes(old)) old.remove()
    for (const [place, card] of cards.entries()) {
      if (rows.children[place] !== card) rows.insertBefore(card, rows.children[place] ?? null)
    }
    below.replaceChildren(...(cards.length > 0 ? [] : [el('p', { class: 'empty' }, empty)]))
  }
}
