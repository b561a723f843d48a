// Between the form of an agent and what the API takes.

export const EVENTS = ['created', 'updated', 'deleted']

export const modelText = (model) => (model ? `${model.provider}/${model.name}` : '')

/** Only what the form shows. Of nested objects, what it does not show stays as it is in `agent`. */
export function definitionFrom(values, agent) {
  const { name, role, execution_mode, trigger_type } = values
  const tools = values.tools.split(',').map((tool) => tool.trim())
  return {
    name,
    role,
    ...promptFrom(values, agent),
    model: modelFrom(values.model.trim(), agent?.model ?? null),
    tools: tools.filter((tool) => tool !== ''),
    execution_mode,
    trigger_type,
    ...(trigger_type === 'schedule' ? scheduleFrom(values) : {}),
    ...(trigger_type === 'reaction' ? { reaction_config: reactionFrom(values, agent?.reaction_config ?? null) } : {}),
  }
}

/** So that what others change meanwhile stays. */
export function changedFields(definition, agent) {
  const changed = ([name, value]) => JSON.stringify(value) !== JSON.stringify(agent[name])
  return Object.fromEntries(Object.entries(definition).filter(changed))
}

/** A prompt of its own replaces the one of the library. */
function promptFrom({ prompt }, agent) {
  // Browsers send line ends as CRLF.
  const text = prompt.replaceAll('\r\n', '\n')
  if (text.trim() === '') return { prompt: null }
  return agent?.prompt_id ? { prompt: text, prompt_id: null } : { prompt: text }
}

function modelFrom(text, before) {
  if (text === modelText(before)) return before
  if (text === '') return null
  const slash = text.indexOf('/')
  // How much it can read is a fact about the model that was.
  const { context_tokens: _, ...kept } = before ?? {}
  return { ...kept, provider: text.slice(0, slash), name: text.slice(slash + 1) }
}

const scheduleFrom = ({ cron_schedule, timezone, catch_up }) => ({
  cron_schedule: cron_schedule.trim(),
  timezone: timezone.trim(),
  catch_up,
})

function reactionFrom(values, before) {
  const lines = values.object_types.split(/\r?\n/)
  const wasShown = before?.objectTypes.join('\n') === lines.join('\n')
  return {
    ...before,
    objectTypes: wasShown ? before.objectTypes : lines.map((line) => line.trim()).filter((line) => line !== ''),
    events: EVENTS.filter((event) => values[`event_${event}`] !== undefined),
    ignoreSelfTriggered: values.ignore_self !== undefined,
    ignoreAgentTriggered: values.ignore_agents !== undefined,
  }
}
