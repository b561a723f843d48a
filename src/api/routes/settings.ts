import type { Pool } from '../../db/pool.ts'
import { getSettings, updateSettings } from '../../identity/settings.ts'
import { wakeForMonth } from '../../journal/month.ts'
import { HALT_CHANNEL, tellProcesses } from '../../journal/wake.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { settingsPatch, settingsSchema } from '../../kernel/project.ts'
import { providerExists } from '../../models/providers.ts'
import { checkAll } from '../../org/sweep.ts'
import { actorOf } from '../auth.ts'
import type { OrgServices } from '../run-services.ts'
import type { App } from '../server.ts'
import { answers, projectParams } from '../shapes.ts'

const tags = ['Projects']

export function addSettingsRoutes(
  app: App,
  { pool, org, onReady }: { pool: Pool; org: OrgServices; onReady: () => void },
): void {
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
      const settings = await updateSettings(pool, request.params.id, request.body, actorOf(request))
      if (request.body.boredom_threshold !== undefined) await checkAll(pool, request.params.id)
      if (request.body.monthly_token_limit !== undefined) {
        // Processes read with the off switches which projects limit their month.
        await tellProcesses(pool, HALT_CHANNEL)
        if ((await wakeForMonth(pool, request.params.id)) > 0) onReady()
      }
      org.sweep()
      return settings
    },
  )
}
