import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type LabelValues,
  type MetricConfiguration,
  Registry,
} from 'prom-client'
import { type Log, silentLog } from '../kernel/log.ts'

/** Names start with `muster_` and end in their unit (`_total` for counters). Labels take few values: never an id. */
interface MetricOptions<Label extends string> {
  readonly name: `muster_${string}`
  readonly help: string
  readonly labels?: readonly Label[]
}

/** The counts that a pool of `pg` gives. */
interface PoolUse {
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
}

export interface Metrics {
  counter<Label extends string = never>(options: MetricOptions<Label>): Counter<Label>
  gauge<Label extends string = never>(options: MetricOptions<Label>): Gauge<Label>
  histogram<Label extends string = never>(
    options: MetricOptions<Label> & { readonly buckets?: readonly number[] },
  ): Histogram<Label>
  /** A gauge that is read for each request for metrics. If reading fails, it is left out and the failure logged. */
  watch<Label extends string = never>(
    options: MetricOptions<Label>,
    read: () => Promise<readonly Reading<Label>[]> | readonly Reading<Label>[],
  ): void
  /** `route` is the pattern (`/api/projects/:id`), never the path. */
  observeHttp(request: { method: string; route: string; status: number; durationMs: number }): void
  watchPool(pool: PoolUse, name?: string): void
  render(): Promise<{ contentType: string; text: string }>
}

type Reading<Label extends string> = { readonly labels: LabelValues<Label>; readonly value: number }

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export function createMetrics(options: { log?: Log } = {}): Metrics {
  const log = options.log ?? silentLog
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const pools = new Map<string, PoolUse>()

  const metrics: Metrics = {
    counter: (settings) => new Counter(configure(settings)),
    gauge: (settings) => new Gauge(configure(settings)),
    histogram: ({ buckets, ...settings }) =>
      new Histogram({ ...configure(settings), ...(buckets ? { buckets: [...buckets] } : {}) }),
    watch(settings, read) {
      const gauge = new Gauge({
        ...configure(settings),
        async collect() {
          gauge.reset()
          try {
            for (const { labels, value } of await read()) gauge.set(labels, value)
          } catch (error) {
            // A reset gauge without labels would still say 0.
            gauge.remove({})
            log.warn({ err: error, metric: settings.name }, 'A metric could not be read.')
          }
        },
      })
    },
    observeHttp({ method, route, status, durationMs }) {
      const labels = { method: methods.has(method) ? method : 'OTHER', route, status: String(status) }
      http.observe(labels, durationMs / 1000)
    },
    watchPool(pool, name = 'main') {
      pools.set(name, pool)
    },
    async render() {
      // prom-client writes "Nan", but the format says "NaN"; Prometheus accepts both, stricter readers do not.
      const text = (await registry.metrics()).replace(/ Nan$/gm, ' NaN')
      return { contentType: registry.contentType, text }
    },
  }

  function configure<Label extends string>(settings: MetricOptions<Label>): MetricConfiguration<Label> {
    return {
      name: settings.name,
      help: settings.help,
      labelNames: [...(settings.labels ?? [])],
      registers: [registry],
    }
  }

  const http = metrics.histogram({
    name: 'muster_http_request_duration_seconds',
    help: 'Time from a request to the end of its answer.',
    labels: ['method', 'route', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  })
  metrics.watch(
    {
      name: 'muster_db_pool_connections',
      help: 'Connections of a pool; waiting counts the callers that have none.',
      labels: ['pool', 'state'],
    },
    () =>
      [...pools].flatMap(([pool, { totalCount, idleCount, waitingCount }]) => {
        const states = { used: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
        return Object.entries(states).map(([state, value]) => ({ labels: { pool, state }, value }))
      }),
  )
  return metrics
}
