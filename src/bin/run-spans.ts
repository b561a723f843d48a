// Turns the events of a run into spans, by OpenTelemetry's conventions for generative AI, with our ids beside them.
// Spans contain no words of people, models or tools.
import type { StoredEvent } from '../journal/entries.ts'
import type { Answers, TracedRun } from '../journal/traced-runs.ts'
import type { ModelChoice } from '../kernel/agent.ts'
import type { PauseReason } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { partSpanId, spanIdOf, traceIdOf } from '../observe/trace-ids.ts'
import type { PastSpan, SpanAttributes } from '../observe/tracing.ts'

export interface KnownRun {
  run: TracedRun
  name: string
  modelOf: (node: string | undefined) => ModelChoice | Pick<ModelChoice, 'provider' | 'name'> | null
}

type EventOf<Kind extends RunEvent['kind']> = Extract<RunEvent, { kind: Kind }>['data']

/** The span of a model call, and the span of the node that made the call. */
export function stepSpans({ run, modelOf }: KnownRun, seq: number, data: EventOf<'step.completed'>): PastSpan[] {
  const { node, usage } = data
  const span = { traceId: traceIdOf(run.root_id), ...timesOf(data) }
  const nodeId = partSpanId(run.id, `node ${seq}`)
  const model = modelOf(node?.name)
  const call: PastSpan = {
    ...span,
    spanId: partSpanId(run.id, `model ${seq}`),
    parentId: node ? nodeId : spanIdOf(run.id),
    kind: 'client',
    name: `chat ${model?.name ?? 'model'}`,
    attributes: {
      ...idsOf(run),
      ...(node ? { 'muster.node': node.name } : {}),
      'muster.step': data.step,
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': model?.provider,
      'gen_ai.system': model?.provider,
      'gen_ai.request.model': model?.name,
      'gen_ai.usage.input_tokens': usage.input_tokens,
      'gen_ai.usage.output_tokens': usage.output_tokens,
      'gen_ai.response.finish_reasons': [data.finish_reason],
      'muster.cost_usd': usage.cost_usd,
      'langsmith.span.kind': 'llm',
    },
  }
  if (!node) return [call]
  const asked: PastSpan = {
    ...span,
    spanId: nodeId,
    parentId: spanIdOf(run.id),
    name: `node ${node.name}`,
    attributes: { ...idsOf(run), 'muster.node': node.name, 'langsmith.span.kind': 'chain' },
  }
  return [asked, call]
}

export function toolSpan({ run }: KnownRun, seq: number, data: EventOf<'tool.completed'>): PastSpan {
  return {
    traceId: traceIdOf(run.root_id),
    spanId: partSpanId(run.id, `tool ${seq}`),
    parentId: spanIdOf(run.id),
    ...timesOf(data),
    name: `execute_tool ${data.name}`,
    attributes: {
      ...idsOf(run),
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': data.name,
      'gen_ai.tool.call.id': data.call_id,
      'muster.blocked': data.blocked,
      'langsmith.span.kind': 'tool',
    },
    failure: data.is_error ? 'tool_error' : null,
  }
}

/**
 * The span of the whole run, or of its part since the last answer. `answers` is set for a supervisor's run. The list is
 * empty if the event ends no span: the run goes on, or its span ended with a pause before.
 */
export function endSpans(
  { run, name }: KnownRun,
  event: StoredEvent,
  { now, answers }: { now: TracedRun | undefined; answers: Answers | null },
): PastSpan[] {
  const data: { pause_reason?: PauseReason; error_code?: string } = JSON.parse(event.data)
  const isOnlyWait = event.kind === 'run.paused' && isWait(run, data.pause_reason)
  if (isOnlyWait || answers?.isOver) return []
  const continued = answers?.lastAt ? { startedAt: answers.lastAt, parentId: spanIdOf(run.id) } : null
  return [
    {
      traceId: traceIdOf(run.root_id),
      spanId: continued ? partSpanId(run.id, `continued ${answers?.count}`) : spanIdOf(run.id),
      parentId: run.parent_run_id === null ? null : spanIdOf(run.parent_run_id),
      startedAt: run.started_at,
      ...continued,
      endedAt: event.at,
      name: `${continued ? 'continue' : 'invoke_agent'} ${name}`,
      attributes: {
        ...idsOf(run),
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': name,
        'gen_ai.agent.id': run.agent_id,
        'muster.status': event.kind.slice('run.'.length),
        'muster.pause_reason': data.pause_reason,
        'muster.input_tokens': now?.input_tokens,
        'muster.output_tokens': now?.output_tokens,
        'langsmith.span.kind': 'chain',
      },
      failure: event.kind === 'run.failed' ? (data.error_code ?? 'failed') : null,
    },
  ]
}

/** True if the run goes on by itself or by an answer. A supervisor's question ends its span. */
function isWait({ node, task_id: taskId }: TracedRun, reason: PauseReason | undefined): boolean {
  if (reason === 'human') return node !== 'supervisor'
  return reason === 'halted' || (reason === 'budget' && taskId !== null)
}

const idsOf = (run: TracedRun): SpanAttributes => ({
  'muster.run_id': run.id,
  'muster.project_id': run.project_id,
  'muster.root_run_id': run.root_id,
  'muster.parent_run_id': run.parent_run_id,
  'muster.resumed_from': run.resumed_from,
  'muster.flow_run_id': run.flow_run_id,
  'muster.task_id': run.task_id,
  'muster.system_variant': run.variant,
  ...(run.node === null ? {} : { 'muster.node': run.node }),
})

function timesOf({ started_at, duration }: { started_at: string; duration: number }): {
  startedAt: Date
  endedAt: Date
} {
  const startedAt = new Date(started_at)
  return { startedAt, endedAt: new Date(startedAt.getTime() + duration) }
}
