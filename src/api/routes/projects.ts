import type { Pool } from '../../db/pool.ts'
import type { KeyCache } from '../../identity/key-cache.ts'
import {
  createProject,
  deleteProject,
  getProject,
  listProjects,
  setHalted,
  updateProject,
} from '../../identity/projects.ts'
import { pageOf } from '../../kernel/fields.ts'
import { projectInput, projectPatch, projectSchema } from '../../kernel/project.ts'
import type { App } from '../http/app.ts'
import { actorOf, principalOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, emptyBody, listQuery, nothing, projectParams } from '../http/shapes.ts'

const openTo = routesOf('Projects')

export interface ProjectRouteOptions {
  pool: Pool
  keys: KeyCache
  create: Create
  onHalt: (projectId: string, isHalted: boolean) => Promise<void>
}

export function addProjectRoutes(app: App, { pool, keys, create, onHalt }: ProjectRouteOptions): void {
  app.post(
    '/api/projects',
    openTo('instance', 'Create a project', { body: projectInput, response: answers(201, projectSchema) }),
    (request, reply) => create(request, reply, (db) => createProject(db, request.body, actorOf(request))),
  )

  app.get(
    '/api/projects',
    openTo('authenticated', 'List the projects these credentials can see', {
      querystring: listQuery,
      response: answers(200, pageOf(projectSchema)),
    }),
    (request) => listProjects(pool, principalOf(request), request.query),
  )

  app.get(
    '/api/projects/:id',
    openTo('viewer', 'Read a project', { params: projectParams, response: answers(200, projectSchema) }),
    (request) => getProject(pool, request.params.id),
  )

  app.patch(
    '/api/projects/:id',
    openTo('admin', 'Change a project', {
      params: projectParams,
      body: projectPatch,
      response: answers(200, projectSchema),
    }),
    (request) => updateProject(pool, request.params.id, request.body, actorOf(request)),
  )

  app.delete(
    '/api/projects/:id',
    openTo('admin', 'Delete a project and everything in it', {
      params: projectParams,
      response: answers(204, nothing),
    }),
    async (request, reply) => {
      await deleteProject(pool, request.params.id, actorOf(request))
      keys.forgetProjects(new Set([request.params.id]))
      return reply.code(204).send(null)
    },
  )

  for (const [verb, halted] of [
    ['halt', true],
    ['unhalt', false],
  ] as const) {
    app.post(
      `/api/projects/:id/${verb}`,
      openTo('admin', halted ? 'Stop all runs of the project' : 'Let the project go on', {
        params: projectParams,
        body: emptyBody,
        response: answers(200, projectSchema),
      }),
      async (request) => {
        const project = await setHalted(pool, request.params.id, halted, actorOf(request))
        await onHalt(project.id, halted)
        return project
      },
    )
  }
}
