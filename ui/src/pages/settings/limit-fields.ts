// The limits as people see them: grouped, named, in units that people use.

import { type Settings, settingsSchema } from '../../../../src/kernel/project.ts'
import { inSeconds } from '../../api/issues.ts'
import { type TypedNumber, typedMs, typedNumber } from '../../parts/typed-number.ts'

export type LimitName = Exclude<keyof Settings, 'default_model' | 'idempotent_hosts'>

interface LimitField {
  name: LimitName
  label: string
  /** Durations are kept in milliseconds and shown in seconds. */
  unit: 'count' | 'seconds'
  /** True: empty means no limit. */
  isOptional?: boolean
}

const count = (name: LimitName, label: string): LimitField => ({ name, label, unit: 'count' })
const optional = (name: LimitName, label: string): LimitField => ({ name, label, unit: 'count', isOptional: true })
const seconds = (name: LimitName, label: string): LimitField => ({ name, label, unit: 'seconds' })
const optionalSeconds = (name: LimitName, label: string): LimitField => ({ ...seconds(name, label), isOptional: true })

export const LIMIT_GROUPS: { name: string; fields: LimitField[] }[] = [
  {
    name: 'Spending and concurrency',
    fields: [
      optional('monthly_token_limit', 'Tokens per month'),
      optional('supervisor_token_limit', 'Tokens of a supervisor run'),
      optional('max_concurrent_runs', 'Runs at once'),
      count('max_concurrent_agents', 'Agents at work at once'),
      count('task_batch_size', 'Tasks of an agent at once'),
    ],
  },
  {
    name: 'Guards',
    fields: [
      count('doom_loop_warn', 'Identical calls: refused from'),
      count('doom_loop_stop', 'Identical calls: stopped at'),
      count('spawn_depth_limit', 'Depth of sub-runs'),
      count('subagent_max_steps', 'Steps of a sub-run'),
      count('recursion_limit', 'Rounds of tools of a specialist'),
      count('supervisor_max_rounds', 'Rounds of a supervisor'),
      count('reaction_chain_limit', 'Reactions in a row'),
      count('stuck_retry_limit', 'Tries of a failed task'),
    ],
  },
  {
    name: 'Times',
    fields: [
      seconds('tool_timeout', 'A tool call'),
      seconds('flow_timeout', 'A flow run'),
      seconds('grace_period', 'A last answer after a timeout'),
      seconds('cancel_drain', 'Work under way after a cancel'),
      seconds('processing_stuck_after', 'A reaction'),
      seconds('poll_interval', 'Between two looks for tasks'),
      seconds('boredom_threshold', 'Without work until bored'),
      seconds('model_patience', 'Max wait for a provider'),
      optionalSeconds('approval_timeout', 'Approval timeout'),
    ],
  },
  {
    name: 'Flows and data',
    fields: [
      count('pipeline_buffer', 'Items between two stages'),
      count('alert_factor', 'Slow from so many times the expected'),
      count('tool_output_limit', 'Bytes of a tool result'),
      optional('run_retention_days', 'Days that runs are kept'),
    ],
  },
]

/** The field of a null is empty. */
export const aboutLimit = (name: LimitName | 'idempotent_hosts'): string =>
  (settingsSchema.shape[name].description ?? '').replace(/\bNull\b/, 'Empty')

export type Typed = Record<LimitName, TypedNumber> & { idempotent_hosts: string }

const FIELDS = LIMIT_GROUPS.flatMap(({ fields }) => fields)

export function typedFrom(settings: Settings): Typed {
  const entries = FIELDS.map(({ name, unit }) => {
    const value = settings[name]
    return [name, value === null ? '' : unit === 'seconds' ? value / 1_000 : value]
  })
  return { ...Object.fromEntries(entries), idempotent_hosts: settings.idempotent_hosts.join('\n') } as Typed // all names
}

/** The settings that differ, as the API takes them. A number that is missing where one is needed is left out. */
export function changesIn(typed: Typed, settings: Settings): Partial<Settings> {
  const before = typedFrom(settings)
  const changed = FIELDS.flatMap(({ name, unit, isOptional }): [LimitName, number | string | null][] => {
    const value = typed[name]
    if (value === before[name]) return []
    if (value === '') return isOptional ? [[name, null]] : []
    return [[name, unit === 'seconds' ? typedMs(value) : typedNumber(value)]]
  })
  const hosts = typed.idempotent_hosts.split(/\s+/).filter((host) => host !== '')
  return {
    ...Object.fromEntries(changed),
    ...(typed.idempotent_hosts !== before.idempotent_hosts && { idempotent_hosts: hosts }),
  }
}

/** The fields that show their own problems. */
export const LIMIT_NAMES: readonly string[] = [...FIELDS.map(({ name }) => name), 'idempotent_hosts']

/** A problem of a field in the field's own unit, with other fields named as people see them. */
export function limitProblem(name: LimitName, problem: string | undefined): string | null {
  if (problem === undefined) return null
  const { unit } = FIELDS.find((field) => field.name === name) ?? {}
  const said = unit === 'seconds' ? inSeconds(problem) : problem
  return FIELDS.reduce((text, other) => text.replace(new RegExp(`\\b${other.name}\\b`), `“${other.label}”`), said)
}
