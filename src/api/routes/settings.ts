import type { Pool } from '../../db/pool.ts'
import { getSettings, updateSettings } from '../../identity/settings.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { settingsPatch, settingsSchema } from '../../kernel/project.ts'
import { providerExists } from '../../models/providers.ts'
import { actorOf } from '../auth.ts'
import type { App } from '../server.ts'
import { answers, projectParams } from '../shapes.ts'

const tags = ['Projects']

export function addSettingsRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/projects/:id/settings',
    {
      config: { access: 'viewer' },
      schema: { tags, summary: 'Read the settings', params: projectParams, response: answers(200, settingsSchema) },
    },
    (request) => getSettings(pool, request.params.id),
  )

  app.patch(
    '/api/projects/:id/settings',
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: 'Change some settings; the others stay',
        params: projectParams,
        body: settingsPatch,
        response: answers(200, settingsSchema),
      },
    },
    async (request) => {
      const provider = request.body.default_model?.provider
      if (provider !== undefined && !(await providerExists(pool, provider))) {
        throw invalidRequest(`default_model.provider: there is no provider called ${provider}.`)
      }
      return updateSettings(pool, request.params.id, request.body, actorOf(request))
    },
  )
}
