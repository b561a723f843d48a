import type { Pool } from '../../db/pool.ts'
import { getSettings, updateSettings } from '../../identity/settings.ts'
import { wakeForMonth } from '../../journal/month.ts'
import { HALT_CHANNEL, restartTimers, tellProcesses } from '../../journal/wake.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import { settingsPatch, settingsSchema } from '../../kernel/project.ts'
import { unknownProvider } from '../../models/providers.ts'
import { checkAll } from '../../org/sweep.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import { routesOf } from '../http/routes-of.ts'
import type { OrgServices } from '../http/run-services.ts'
import { answers, projectParams } from '../http/shapes.ts'

const openTo = routesOf('Projects')

export function addSettingsRoutes(
  app: App,
  { pool, org, onReady }: { pool: Pool; org: OrgServices; onReady: () => void },
): void {
  app.get(
    '/api/projects/:id/settings',
    openTo('viewer', 'Read the settings', { params: projectParams, response: answers(200, settingsSchema) }),
    (request) => getSettings(pool, request.params.id),
  )

  app.patch(
    '/api/projects/:id/settings',
    openTo('admin', 'Change some settings; the others stay', {
      params: projectParams,
      body: settingsPatch,
      response: answers(200, settingsSchema),
    }),
    async (request) => {
      const provider = request.body.default_model?.provider
      const unknown = provider === undefined ? null : await unknownProvider(pool, provider)
      if (unknown !== null) throw invalidRequest(`default_model.provider: ${unknown}`)
      const { approval_timeout, model_patience } = request.body
      const isTimed = approval_timeout !== undefined || model_patience !== undefined
      let woken = 0
      const settings = await updateSettings(pool, request.params.id, request.body, actorOf(request), async (tx) => {
        woken = isTimed ? await restartTimers(tx, request.params.id) : 0
      })
      if (woken > 0) onReady()
      if (request.body.boredom_threshold !== undefined) await checkAll(pool, request.params.id)
      if (request.body.monthly_token_limit !== undefined) {
        // Processes read which projects limit their month together with the off switches.
        await tellProcesses(pool, HALT_CHANNEL)
        if ((await wakeForMonth(pool, request.params.id)) > 0) onReady()
      }
      org.sweep()
      return settings
    },
  )
}
