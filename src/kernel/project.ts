import { z } from 'zod'
import { durationField, idField, instantField, nameField } from './fields.ts'

export const projectSchema = z.strictObject({
  id: idField,
  name: nameField,
  halted_at: instantField.nullable(),
  created_at: instantField,
  updated_at: instantField,
})
export type Project = z.infer<typeof projectSchema>

export const projectInput = z.strictObject({ name: nameField })
export const projectPatch = projectInput.partial()

const interval = durationField.min(100)
const count = (minimum: number) => z.int().min(minimum).max(1_000_000)
const modelField = z.strictObject({ provider: nameField, name: nameField })

/**
 * A host as a URL spells it: lower case, no user, no path, addresses in their plain form. Without a port it means every
 * port.
 */
const hostField = z
  .string()
  .min(1)
  .max(260)
  .refine((text) => isPlainHost(text), 'must be host or host:port, in lower case')

/** Every limit and default of a project. Only changed values are stored; the others follow the release. */
export const settingsSchema = z.strictObject({
  poll_interval: interval,
  boredom_threshold: interval,
  stuck_retry_limit: count(0),
  max_concurrent_agents: count(1),
  task_batch_size: count(1),
  grace_period: durationField,
  doom_loop_warn: count(2),
  doom_loop_stop: count(2),
  recursion_limit: count(0),
  subagent_max_steps: count(1),
  spawn_depth_limit: count(0),
  tool_timeout: durationField.min(1).max(3_600_000),
  tool_output_limit: z.int().min(1_024).max(16_777_216),
  processing_stuck_after: interval,
  cancel_drain: durationField,
  flow_timeout: durationField.min(1),
  pipeline_buffer: count(1),
  alert_factor: z.number().min(1).max(1_000),
  reaction_chain_limit: count(1),
  supervisor_max_rounds: count(1),
  default_model: modelField,
  run_retention_days: z.int().min(1).max(36_500).nullable(),
  max_concurrent_runs: count(1).nullable(),
  monthly_token_limit: z
    .int()
    .min(0)
    .max(1_000_000_000_000)
    .nullable()
    .describe('The tokens of all model calls of the project in a UTC month.'),
  idempotent_hosts: z
    .array(hostField)
    .max(100)
    .describe('Servers that heed the header Idempotency-Key: a write to them is repeated after a crash.'),
})
export type Settings = z.infer<typeof settingsSchema>
export const settingsPatch = settingsSchema.partial()
export type SettingsPatch = z.infer<typeof settingsPatch>

export const defaultSettings: Settings = {
  poll_interval: 30_000,
  boredom_threshold: 900_000,
  stuck_retry_limit: 3,
  max_concurrent_agents: 10,
  task_batch_size: 1,
  grace_period: 30_000,
  doom_loop_warn: 3,
  doom_loop_stop: 5,
  recursion_limit: 5,
  subagent_max_steps: 50,
  spawn_depth_limit: 5,
  tool_timeout: 60_000,
  tool_output_limit: 262_144,
  processing_stuck_after: 300_000,
  cancel_drain: 30_000,
  flow_timeout: 600_000,
  pipeline_buffer: 100,
  alert_factor: 2,
  reaction_chain_limit: 8,
  supervisor_max_rounds: 25,
  default_model: { provider: 'offline', name: 'offline' },
  run_retention_days: null,
  max_concurrent_runs: null,
  monthly_token_limit: null,
  idempotent_hosts: [],
}

/** Stored values over the defaults. A field written by a newer or older release that does not fit is the default. */
export function settingsFrom(stored: Readonly<Record<string, unknown>>): Settings {
  const fits = (field: [string, unknown]): boolean => settingsPatch.safeParse(Object.fromEntries([field])).success
  return settingsSchema.parse({ ...defaultSettings, ...Object.fromEntries(Object.entries(stored).filter(fits)) })
}

/** The first rule the settings break together, or null. Each field alone was checked by the schema. */
export function settingsProblem(settings: Settings): string | null {
  if (settings.doom_loop_stop < settings.doom_loop_warn) {
    return 'doom_loop_stop must not be below doom_loop_warn'
  }
  return null
}

/** Only the URL parser's own spelling is taken: `127.1` and `EXAMPLE.com` would never match a parsed URL. */
function isPlainHost(text: string): boolean {
  const { host, port } = /^(?<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?<port>[1-9]\d{0,4}))?$/.exec(text)?.groups ?? {}
  if (host === undefined || Number(port ?? 1) > 65_535) return false
  return URL.parse(`http://${host}`)?.hostname === host
}
