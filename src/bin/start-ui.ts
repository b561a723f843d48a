// `muster start` of the service `ui`: pages and forwarding, without database, secrets and data folder.
import { createUiServer } from '../api/ui-server.ts'
import { createEgress } from '../egress/egress.ts'
import { setFaultPlan } from '../kernel/fault.ts'
import { createMetrics } from '../observe/metrics.ts'
import { banner } from './banner.ts'
import { type Config, ConfigError } from './config.ts'
import { listen } from './listen.ts'
import { createProcessLog } from './process-log.ts'
import { createShutdown } from './shutdown.ts'
import type { Terminal } from './terminal.ts'
import { openTracing } from './tracing.ts'
import { version } from './version.ts'

/** The agent-service waits for a run for ten minutes before it answers. */
const HEADERS_TIMEOUT_MS = 11 * 60_000

export async function startUi(config: Config, terminal: Terminal): Promise<void> {
  if (config.agentUrl === null) throw new ConfigError('MUSTER_SERVE=ui needs MUSTER_AGENT_URL.')
  setFaultPlan(config.faultPlan)
  const log = await createProcessLog(config, terminal)
  const shutdown = createShutdown(log, config.drainMs)
  try {
    if (config.adminToken) log.registerSecret(config.adminToken)
    // A stream may be silent for as long as its run is; TCP detects a dead peer.
    const egress = createEgress({ allow: [], headersTimeoutMs: HEADERS_TIMEOUT_MS, bodyIdleTimeoutMs: 0 })
    shutdown.last('egress', () => egress.close())
    const tracing = await openTracing(config, egress, log)
    shutdown.last('traces', () => tracing.stop())
    const { agentUrl, publicUrl, trustProxy, adminToken } = config
    const app = createUiServer({
      agentUrl,
      publicUrl,
      trustProxy,
      adminToken,
      fetch: egress.fetch('trusted'),
      log,
      metrics: createMetrics({ log }),
      tracer: tracing,
      version,
    })
    shutdown.last('server', () => app.close())
    await listen(app, config)
    terminal.print(banner({ config, terminal, rows: [['Agent', config.agentUrl.href]], hint: '' }))
  } catch (error) {
    terminal.clearProgress()
    await shutdown.now()
    throw error
  }
}
