// The requests of one project that are at work at once have a bounded number of places in each process. Further
// requests wait in the project's own queue, before they ask for a database connection, so a project that sends many
// slow requests leaves the pool to the others.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { MusterError } from '../../kernel/errors.ts'
import { isInstanceAdmin } from '../../kernel/principal.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * True: the answer may be megabytes, or the search for its rows long. Such requests share HEAVY_PLACES. A list is
     * heavy if its rows hold values of any size, such as inputs, outputs, properties, trees of flows and messages.
     */
    isHeavy?: boolean | ((request: FastifyRequest) => boolean)
  }
  interface FastifyRequest {
    /** The queue in which this request holds a place; null if it holds none. */
    placeIn: Queue | null
  }
}

export interface ProjectPlaces {
  /** Resolves to true once the request has a place, and to false if its client leaves before that. */
  take(request: FastifyRequest, reply: FastifyReply, projectId: string, isHeavy?: boolean): Promise<boolean> | true
  /** Gives back the place of a request that is done, or that goes on without a database connection. */
  leave(request: FastifyRequest): void
  /**
   * For work that requests of all projects put into one statement. A small request gives its place back, because
   * limited places would only lead to more statements. A large one keeps it, so that no project fills the statement
   * alone.
   */
  share(request: FastifyRequest): void
}

/** If this many requests of one project wait, further ones are refused. */
export const MOST_WAITING_REQUESTS = 200
/** In bytes. Fifty such bodies together are a statement of 1 MB. */
const SMALL_BODY = 20_000
/** The wait is short, because the queue moves on with every answer. */
const RETRY_AFTER_S = 1

/** One project may have a quarter of the connections at work, and at least two. */
export const placesOf = (connections: number): number => Math.max(2, Math.floor(connections / 4))

/**
 * Heavy requests have a place of their own, so that they do not hold up the project's other requests. They cost the
 * processor, so several at once slow down all projects. Measured on two cores, with 60 connections that list runs of 1
 * MB: another project's trigger takes 25 ms beside one list at a time, 80 ms beside two, and 770 ms beside five.
 */
const HEAVY_PLACES = 1

interface Queue {
  name: string
  taken: number
  /** The waiting requests in the order of their arrival. Each function is called with the place that became free. */
  waiting: Set<() => void>
}

export function createProjectPlaces(places: number, mostWaiting = MOST_WAITING_REQUESTS): ProjectPlaces {
  const queues = new Map<string, Queue>()

  const leave: ProjectPlaces['leave'] = (request) => {
    const queue = request.placeIn
    if (queue === null) return
    request.placeIn = null
    const [next] = queue.waiting
    // A place that is handed on stays taken.
    if (next) next()
    else if (--queue.taken === 0) queues.delete(queue.name)
  }

  return {
    take: (request, reply, projectId, isHeavy = false) => {
      const name = isHeavy ? `heavy ${projectId}` : projectId
      const queue = queues.get(name) ?? { name, taken: 0, waiting: new Set() }
      if (queue.taken === 0) queues.set(name, queue)
      if (queue.taken < (isHeavy ? HEAVY_PLACES : places)) {
        queue.taken++
        request.placeIn = queue
        return true
      }
      if (queue.waiting.size >= mostWaiting) throw tooManyWaiting(mostWaiting)
      return waitFor(queue, request, reply)
    },
    leave,
    share: (request) => {
      if (Number(request.headers['content-length'] ?? Infinity) <= SMALL_BODY) leave(request)
    },
  }
}

function waitFor(queue: Queue, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const leaveQueue = (hasPlace: boolean): void => {
    queue.waiting.delete(onPlace)
    reply.raw.off('close', onGone)
    if (hasPlace) request.placeIn = queue
    resolve(hasPlace)
  }
  const onPlace = (): void => leaveQueue(true)
  const onGone = (): void => leaveQueue(false)
  if (reply.raw.destroyed) return Promise.resolve(false)
  queue.waiting.add(onPlace)
  reply.raw.once('close', onGone)
  return promise
}

const tooManyWaiting = (most: number): MusterError =>
  new MusterError('RATE_LIMITED', `${most} requests of this project are waiting already. Try again later.`, {
    retryAfterS: RETRY_AFTER_S,
  })

/**
 * Every handler of a project's route works in a place, which belongs to the handler and not to the answer: a client
 * that leaves does not end its statements, and a client that reads slowly holds no connection. Must be called before
 * the routes are added. The instance admin needs no place, and so can always stop a project.
 */
export function requirePlaces(app: FastifyInstance, places: ProjectPlaces): void {
  app.decorateRequest('placeIn', null)
  app.addHook('onRoute', (route) => {
    // Fastify makes the HEAD route of a GET route from the handler that is wrapped already.
    if (!/^\/(api\/projects\/:id|v1\/)/.test(route.url) || route.method === 'HEAD') return
    const { handler } = route
    route.handler = async function (request, reply) {
      const { principal, projectId } = request
      if (projectId === null || principal === null || isInstanceAdmin(principal)) {
        return handler.call(this, request, reply)
      }
      const { isHeavy } = route.config ?? {}
      const needsHeavy = typeof isHeavy === 'function' ? isHeavy(request) : isHeavy
      const taken = places.take(request, reply, projectId, needsHeavy)
      if (taken !== true && !(await taken)) return reply.hijack()
      try {
        return await handler.call(this, request, reply)
      } finally {
        places.leave(request)
      }
    }
  })
}
