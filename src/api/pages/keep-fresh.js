// Work under way is shown as it is now: asked again and again while somebody looks at it, and followed by its events.

/** A slow server is asked less often: it rests for so many times as long as its answer took. */
const REST = 2

/**
 * Calls `work` now and then every `everyMs`, as long as the element stands in a page that is in sight; `poke` asks for the
 * next call sooner, but never sooner than `leastMs` after the last. Where `work` answers false there is nothing more to
 * ask for, unless somebody does. `onRest` is told when nobody looks any more.
 */
export function keepFresh(element, { work, everyMs, leastMs = 200, onRest = () => {} }) {
  let timer = 0
  let begunAt = 0
  let isBusy = false
  let isPoked = false
  document.addEventListener('visibilitychange', wake)
  window.addEventListener('hashchange', wake)
  next(0)
  return { poke, stop }

  function poke() {
    isPoked = true
    if (!isBusy) next(begunAt + leastMs - performance.now())
  }

  async function turn() {
    if (!element.isConnected) return stop()
    if (document.visibilityState === 'hidden') return onRest()
    isBusy = true
    isPoked = false
    begunAt = performance.now()
    const isOver = (await work()) === false
    isBusy = false
    if (isOver && !isPoked) return
    const took = performance.now() - begunAt
    next(Math.max(isPoked ? leastMs - took : everyMs - took, REST * took))
  }

  function next(inMs) {
    clearTimeout(timer)
    timer = setTimeout(turn, Math.max(0, inMs))
  }

  /** Also where the page goes elsewhere: what is gone then stops at once. */
  function wake() {
    if (!isBusy) next(0)
  }

  function stop() {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', wake)
    window.removeEventListener('hashchange', wake)
    onRest()
  }
}

const LAST = ['flow.completed', 'flow.partial', 'flow.failed', 'flow.cancelled', 'flow.timed_out']
const KINDS = [
  ...['flow.started', 'task.started', 'task.completed', 'task.failed', 'task.skipped', 'task.slow'],
  ...['items.completed', 'items.skipped', 'topology.switched', 'alert', 'node.expired', ...LAST],
]

/**
 * The events of a flow run, from its first one on. The browser comes back by itself where the connection was cut, and
 * goes on after the last it has seen.
 */
export function followFlow(path, onEvent) {
  const source = new EventSource(`${path}/events`)
  for (const kind of KINDS) {
    source.addEventListener(kind, ({ data }) => {
      if (LAST.includes(kind)) source.close()
      // An event may have a kind of its own.
      onEvent({ ...JSON.parse(data), event: kind })
    })
  }
  return { close: () => source.close(), isOpen: () => source.readyState !== EventSource.CLOSED }
}
