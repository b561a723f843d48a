import { get, serverTime } from './api.js'
import { clockTime, el, failure, section, setText, skeleton } from './dom.js'
import { durationText } from './flow-time.js'
import { statusBadge } from './status.js'
import { createTaskBook } from './task-book.js'

const MOST_ROWS = 200
const whole = new Intl.NumberFormat()
const COLUMNS = ['Task', 'Status', 'Worker', 'Tries', 'Start', 'Duration', 'Timeline', 'Error']

/**
 * The tasks of a flow run in the order in which they are known, each with its place in time. A row stays where it is;
 * what an event changes is shown in the next frame.
 */
export function flowTasks({ path, run: first }) {
  const book = createTaskBook({
    read: ({ limit, cursor }) =>
      get(`${path}/tasks?${new URLSearchParams({ limit: String(limit), ...(cursor ? { cursor } : {}) })}`),
  })
  const body = el('tbody')
  const table = el(
    'table',
    { class: 'tasks' },
    el(
      'thead',
      {},
      el(
        'tr',
        {},
        COLUMNS.map((name) => el('th', { scope: 'col', class: name.toLowerCase() }, name)),
      ),
    ),
    body,
  )
  const note = el('p', { class: 'hint', role: 'status' })
  const below = el('div', {}, skeleton(4))
  const scroll = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table of tasks' }, table)
  const element = section('Tasks', null, note, scroll, below)
  const rows = new Map()
  const changed = new Set()
  let run = first
  let chosen = null
  stretch()
  reload()
  return { element, reload, apply, update, filter }

  async function reload() {
    try {
      await book.load()
      below.replaceChildren()
      for (const { id } of book.all()) changed.add(id)
      showChanged()
    } catch (error) {
      below.replaceChildren(failure(error, reload))
    }
  }

  function apply(event) {
    const task = book.apply(event)
    if (!task) return
    if (changed.size === 0) requestAnimationFrame(showChanged)
    changed.add(task.id)
  }

  function update(now) {
    const hasBegun = beginOf(now) !== beginOf(run)
    run = now
    stretch()
    const at = serverTime()
    for (const row of rows.values()) row.tick(at, { isMoved: hasBegun })
    say()
  }

  /** The same status again means all of them. Answers what is chosen now. */
  function filter(status) {
    chosen = chosen === status ? null : status
    showAll()
    return chosen
  }

  function showAll() {
    rows.clear()
    body.replaceChildren()
    for (const { id } of book.all()) changed.add(id)
    showChanged()
  }

  function showChanged() {
    for (const id of changed) {
      const task = book.find(id)
      const row = rows.get(id)
      if (row && fits(task)) row.update(task)
      else if (row) {
        row.element.remove()
        rows.delete(id)
      } else if (fits(task) && rows.size < MOST_ROWS) {
        const made = taskRow(task, () => beginOf(run))
        rows.set(id, made)
        body.append(made.element)
      }
    }
    changed.clear()
    stretch()
    say()
  }

  function fits(task) {
    return chosen === null || task.status === chosen
  }

  /** All bars are as wide as their share of this. */
  function stretch() {
    table.style.setProperty('--span', String(Math.max(1, endOf(run) - beginOf(run))))
  }

  function say() {
    const total = chosen === null ? run.progress.total : run.progress[chosen]
    const kind = chosen === null ? 'tasks' : `${chosen} tasks`
    const where =
      chosen === null ? 'choose a status above to see others, or export the trace' : 'export the trace to see all'
    const isCut = rows.size === MOST_ROWS && total > MOST_ROWS
    setText(note, isCut ? `${MOST_ROWS} of ${whole.format(total)} ${kind} are shown: ${where}.` : '')
    scroll.hidden = rows.size === 0
  }
}

const beginOf = (run) => Date.parse(run.started_at ?? run.created_at)
const endOf = (run) => (run.completed_at ? Date.parse(run.completed_at) : serverTime())

function taskRow(task, beginsAt) {
  const [status, worker, tries, start, duration, error] = Array.from({ length: 6 }, () => el('td'))
  const bar = el('span', { class: 'span' })
  const title = task.name === task.id ? task.id : `${task.name} · ${task.id}`
  const element = el(
    'tr',
    { 'data-task': task.id },
    el(
      'th',
      { scope: 'row', title },
      task.name,
      task.name === task.id ? null : el('span', { class: 'dim task-id' }, ` ${task.id}`),
    ),
    ...[status, worker, tries, start, duration],
    el('td', { class: 'track' }, el('div', {}, bar)),
    error,
  )
  let shown = task
  error.className = 'problem'
  duration.className = tries.className = start.className = 'number'
  update(task)
  return { element, update, tick }

  function update(now) {
    shown = now
    if (element.dataset.status !== now.status) {
      element.dataset.status = now.status
      status.replaceChildren(statusBadge(now.status))
      bar.className = `span ${now.status}`
    }
    setText(worker, now.worker ?? '')
    worker.title = now.worker ?? ''
    setText(tries, now.attempts === 0 ? '' : whole.format(now.attempts))
    setText(start, now.start_at ? clockTime(new Date(now.start_at)) : '')
    showError(now.error)
    place()
    showDuration(serverTime())
  }

  function tick(at, { isMoved }) {
    if (isMoved) place()
    if (shown.status === 'running') showDuration(at)
  }

  function showDuration(at) {
    const { start_at, end_at } = shown
    if (start_at === null) return setText(duration, '')
    const ms = (end_at === null ? at : Date.parse(end_at)) - Date.parse(start_at)
    setText(duration, durationText(shown.status === 'running' ? ms - (ms % 1_000) : ms).replace(/^0 ms$/, '0 s'))
  }

  function place() {
    const { start_at, end_at } = shown
    bar.hidden = start_at === null
    if (start_at === null) return
    bar.style.setProperty('--from', String(Math.max(0, Date.parse(start_at) - beginsAt())))
    bar.style.setProperty('--for', String(end_at === null ? 0 : Date.parse(end_at) - Date.parse(start_at)))
  }

  /** One line, so that no row grows by itself; whoever wants to know opens it. */
  function showError(words) {
    if ((words ?? '') === error.textContent) return
    error.replaceChildren(...(words === null ? [] : [el('details', {}, el('summary', {}, words))]))
  }
}
