import type { FastifyInstance, FastifyReply } from 'fastify'
import type { ProjectPlaces } from './project-places.ts'

/** The signal fires when the client is gone, when the server closes, or when the time is up. */
export type TrackRequest = (reply: FastifyReply, timeoutMs?: number) => AbortSignal

const CLOSE_WITHIN_MS = 1_000

/**
 * For requests that wait, such as for the end of a run. A server that closes aborts them. They leave their place to the
 * project's other requests, because a wait may take minutes and holds no database connection.
 */
export function trackLongRequests(app: FastifyInstance, places: ProjectPlaces): TrackRequest {
  const open = new Map<AbortController, Promise<void>>()
  let isClosing = false
  app.addHook('preClose', async () => {
    isClosing = true
    const late = new Promise((resolve) => setTimeout(resolve, CLOSE_WITHIN_MS).unref())
    for (const controller of open.keys()) controller.abort()
    await Promise.race([Promise.all(open.values()), late])
  })
  return (reply, timeoutMs) => {
    places.leave(reply.request)
    // The client has left already, so its connection will emit no event.
    if (reply.raw.destroyed) return AbortSignal.abort()
    const controller = new AbortController()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = timeoutMs === undefined ? null : setTimeout(() => controller.abort(), timeoutMs)
    open.set(controller, promise)
    if (isClosing) controller.abort()
    reply.raw.once('close', () => {
      if (timer) clearTimeout(timer)
      open.delete(controller)
      controller.abort()
      resolve()
    })
    return controller.signal
  }
}
