import { z } from 'zod'
import { durationField, idField, instantField, nameField } from './fields.ts'
import { LARGEST_VALUE_BYTES } from './limits.ts'

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

/** A host as a URL spells it: lower case, no user, no path. Without a port it means every port. */
const hostField = z
  .string()
  .min(1)
  .max(260)
  .refine((text) => isPlainHost(text), 'must be host or host:port, in lower case')

/** Every limit and default of a project. Only changed values are stored; the others follow the release. */
export const settingsSchema = z.strictObject({
  poll_interval: interval.describe(
    'The time between two looks at idle agents and overlooked tasks. The shortest one of all projects counts for all.',
  ),
  boredom_threshold: interval.describe('An agent that had no work for this time is bored, and its senior gets a task.'),
  stuck_retry_limit: count(0).describe(
    'How often a task that failed is tried again. After that the task is blocked, and its agent is stuck.',
  ),
  max_concurrent_agents: count(1).describe('The most agents that work on tasks at the same time.'),
  task_batch_size: count(1).describe('The most tasks that one agent works on at the same time.'),
  grace_period: durationField.describe(
    'The time that the model has after the timeout of a run for a last answer, a summary without tools.',
  ),
  doom_loop_warn: count(2).describe(
    'From this many identical tool calls in a row on, the tool is not called, and the model is told to try something else.',
  ),
  doom_loop_stop: count(2).describe('At this many identical tool calls in a row the run ends as failed.'),
  recursion_limit: count(0).describe(
    'The most steps in a row in which a specialist of a supervisor system may call tools.',
  ),
  subagent_max_steps: count(1).describe(
    'The most model calls of a spawned agent that names no max_steps, and of a specialist of a supervisor system.',
  ),
  spawn_depth_limit: count(0).describe('How deep runs may be nested by spawn_agent and by flows that start agents.'),
  tool_timeout: durationField
    .min(1)
    .max(3_600_000)
    .describe('The most time of a tool call and of a hook of middleware. A tool may name a timeout of its own.'),
  tool_output_limit: z
    .int()
    .min(1_024)
    .max(LARGEST_VALUE_BYTES)
    .describe('The most bytes of the result of a tool call. The rest is cut off, and a marker says so.'),
  processing_stuck_after: interval.describe(
    'The most time of a reaction. After that its entry in the processing log is abandoned, and its run is cancelled.',
  ),
  cancel_drain: durationField.describe(
    'The time that work under way has to end by itself after a cancel: leaves of a flow run, tool calls of a run.',
  ),
  flow_timeout: durationField.min(1).describe('The most time of a flow run that names no timeout.'),
  pipeline_buffer: count(1).describe('The most items that wait between two stages of a pipeline that names no buffer.'),
  alert_factor: z
    .number()
    .min(1)
    .max(1_000)
    .describe('An alert is raised for a flow run that takes longer than this many times its expected duration.'),
  reaction_chain_limit: count(1).describe(
    'The most changes that agents make in answer to each other, and the most tasks that agents give on, in a row.',
  ),
  supervisor_max_rounds: count(1).describe(
    'The most times that specialists of a supervisor system work on a task before people are asked.',
  ),
  supervisor_token_limit: z
    .int()
    .min(1)
    .max(1_000_000_000_000)
    .nullable()
    .describe(
      'The most tokens that a supervisor and its specialists use for a task before people are asked; their answer allows as many again. Null means no limit.',
    ),
  default_model: modelField.describe(
    'The model of agents that name none, of the functions muster.ask, muster.condense and the like, and of supervisor systems.',
  ),
  run_retention_days: z
    .int()
    .min(1)
    .max(36_500)
    .nullable()
    .describe('Runs and flow runs that ended longer ago are deleted with all that belongs to them. Null keeps them.'),
  max_concurrent_runs: count(1)
    .nullable()
    .describe('The most runs of the project at the same time; others wait. Null means no limit.'),
  monthly_token_limit: z
    .int()
    .min(0)
    .max(1_000_000_000_000)
    .nullable()
    .describe('The most tokens of all model calls of the project in a UTC month. Null means no limit.'),
  model_patience: durationField.describe(
    'The most time that a run waits for a provider that fails, from the first failed try of a model call on. Then the run fails; with 0 it does not wait.',
  ),
  idempotent_hosts: z
    .array(hostField)
    .max(100)
    .describe('Servers that heed the header Idempotency-Key: a write to them is repeated after a crash.'),
  approval_timeout: durationField
    .min(1)
    .nullable()
    .describe('The most time that a call waits for approval. After that it counts as rejected. Null means no limit.'),
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
  supervisor_token_limit: null,
  default_model: { provider: 'offline', name: 'offline' },
  run_retention_days: null,
  max_concurrent_runs: null,
  monthly_token_limit: null,
  model_patience: 3_600_000,
  idempotent_hosts: [],
  approval_timeout: null,
}

/** Stored values over the defaults. A field of another release that does not fit is replaced by its default. */
export function settingsFrom(stored: Readonly<Record<string, unknown>>): Settings {
  const fits = (field: [string, unknown]): boolean => settingsPatch.safeParse(Object.fromEntries([field])).success
  return settingsSchema.parse({ ...defaultSettings, ...Object.fromEntries(Object.entries(stored).filter(fits)) })
}

/** The first rule the settings break together, or null. Each field alone was checked by the schema. */
export function settingsProblem(settings: Settings): string | null {
  if (settings.doom_loop_stop < settings.doom_loop_warn) {
    return 'doom_loop_stop must not be below doom_loop_warn.'
  }
  return null
}

/** Only the URL parser's own spelling is taken: `127.1` and `EXAMPLE.com` would never match a parsed URL. */
function isPlainHost(text: string): boolean {
  const { host, port } = /^(?<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?<port>[1-9]\d{0,4}))?$/.exec(text)?.groups ?? {}
  if (host === undefined || Number(port ?? 1) > 65_535) return false
  return URL.parse(`http://${host}`)?.hostname === host
}
