import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Feed, Following } from '../feed/feed.ts'
import type { App } from '../http/app.ts'
import { type EventRoutes, eventAnswers, eventHeaders, streamWhile } from '../http/follow-events.ts'
import { routesOf } from '../http/routes-of.ts'
import { projectParams } from '../http/shapes.ts'
import type { EventStream } from '../http/sse.ts'
import type { ProjectsNow } from '../http/still-admitted.ts'

const openTo = routesOf('Events')

export interface FeedRouteOptions extends EventRoutes {
  feed: Feed
  projectsNow: ProjectsNow
}

const CHANGES = `Events of the type change, with the data {kind, id, status, at}: kind is run, flow_run, task, agent, object, alert or message. Each thing is told in its last state, at most once in 100 ms. A run or flow run at work is told about once a second.`
const STATUSES = `The status of a run, flow run, task or agent is its own, or deleted; of an object created, updated or deleted; of an alert open or acked; of a message sent.`
const RESET = `An event of the type reset means: read the lists again. It comes if the Last-Event-ID is older than five minutes`
const ORDER = `Open the stream first, and then read the lists, so that no change is missed between the two.`

export function addEventRoutes(app: App, options: FeedRouteOptions): void {
  const { feed } = options
  app.get(
    '/api/projects/:id/events',
    openTo('viewer', 'Follow the changes in a project', {
      params: projectParams,
      headers: eventHeaders,
      response: eventAnswers([CHANGES, STATUSES, `${RESET}.`, ORDER].join(' ')),
    }),
    async (request, reply) => {
      const { id } = request.params
      const beginning = await feed.begin(request.headers['last-event-id'])
      const isAdmitted = (): Promise<boolean> => options.stillAdmitted(request, id)
      return streamWhile(options, { request, reply, isAdmitted }, (stream, signal) => {
        const following = feed.join({ ...beginning, stream, projects: [id], namesProject: false })
        return untilLeft(following, signal)
      })
    },
  )

  app.get(
    '/api/events',
    openTo('authenticated', 'Follow the changes in all projects these credentials can see', {
      headers: eventHeaders,
      response: eventAnswers(
        [CHANGES, 'The data also have project_id.', STATUSES, `${RESET}, and if projects came or went.`, ORDER].join(
          ' ',
        ),
      ),
    }),
    async (request, reply) => followAll(options, request, reply),
  )
}

async function followAll(
  options: FeedRouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { feed, projectsNow } = options
  const beginning = await feed.begin(request.headers['last-event-id'])
  const projects = (await projectsNow(request)) ?? []
  let known = new Set(projects.map(({ id }) => id))
  let since = beginning.place
  let following: Following | null = null

  const isAdmitted = async (): Promise<boolean> => {
    const before = following?.place() ?? since
    const now = await projectsNow(request)
    if (now === null) return false
    const ids = new Set(now.map(({ id }) => id))
    const hasGone = [...known].some((id) => !ids.has(id))
    // A project that was made since then had nothing that the reader could have missed.
    const hasOld = now.some(({ id, created_at: at }) => !known.has(id) && at.getTime() < since.at)
    following?.setProjects(ids, { since, mustReset: hasGone || hasOld })
    known = ids
    since = before
    return true
  }
  return streamWhile(options, { request, reply, isAdmitted }, (stream: EventStream, signal) => {
    following = feed.join({ ...beginning, stream, projects: known, namesProject: true })
    return untilLeft(following, signal)
  })
}

function untilLeft(following: Following, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const leave = (): void => {
      following.leave()
      resolve()
    }
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
  })
}
