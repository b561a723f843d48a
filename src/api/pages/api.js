// The one file that talks to the API. A call answers the body or throws an ApiError whose message is meant for people.

export class ApiError extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

const PATIENCE_MS = 15_000
/** Muster has its hands full, or its database is coming back. GETs are asked again, as after a lost connection. */
const BUSY = 503
const MOST_TRIES = 4
const LONGEST_PAUSE_MS = 3_000

export const get = (path) => call('GET', path)
export const post = (path, body = {}) => call('POST', path, body)
export const patch = (path, body) => call('PATCH', path, body)
export const remove = (path) => call('DELETE', path)

/** The session ended meanwhile: whoever shows the page asks to sign in again. */
export const onSignedOut = (listener) => window.addEventListener('muster:signed-out', listener)

let offsetMs = 0

/** Now, by the clock of Muster: this machine's may be wrong. */
export const serverTime = () => Date.now() + offsetMs

async function call(method, path, body) {
  const answer = method === 'GET' ? await sendPatiently(path) : await send(method, path, body)
  if (answer.status === 204) return null
  const content = await answer.json().catch(() => null)
  if (answer.ok) return content
  // At these two doors 401 is an answer, not the end of a session.
  const isDoor = path === '/api/me' || path.startsWith('/api/auth/sign-in')
  if (answer.status === 401 && !isDoor) window.dispatchEvent(new Event('muster:signed-out'))
  throw new ApiError(answer.status, content?.error?.message ?? `Muster answered ${answer.status}.`)
}

async function sendPatiently(path) {
  for (let tries = 1; ; tries++) {
    const answer = await send('GET', path).catch((error) => {
      if (tries === MOST_TRIES) throw error
      return null
    })
    if (answer && (answer.status !== BUSY || tries === MOST_TRIES)) return answer
    const pauseMs = Number(answer?.headers.get('retry-after') ?? 1) * 1_000
    await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMs, LONGEST_PAUSE_MS)))
  }
}

async function send(method, path, body) {
  try {
    const answer = await fetch(path, {
      method,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    noteTime(answer.headers.get('date'))
    return answer
  } catch {
    throw new ApiError(0, 'Muster does not answer. Is it running?')
  }
}

/** The header tells whole seconds: less than two are no difference. */
function noteTime(date) {
  const differsBy = date === null ? 0 : Date.parse(date) - Date.now()
  offsetMs = Math.abs(differsBy) < 2_000 ? 0 : differsBy
}
