// Starts a flow of the project or a template, and leads to the page of its run.
import { Group, NumberInput, Select, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { startWork } from '../../api/client.ts'
import { type FlowTemplate, flowRunQuery, patternName, type StoredFlow } from '../../api/flows.ts'
import { projectPath } from '../../api/queries.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { inputOf, textOf } from './flow-input.ts'

interface Props {
  projectId: string
  flows: readonly StoredFlow[]
  templates: readonly FlowTemplate[]
  /** "flow ID", "template NAME" or "run ID"; empty if nothing is chosen yet. */
  chosen: string
  /** A flow run whose input and limits are given again; without one the input is the example of a template. */
  again?: FlowRun
  onClose: () => void
}

/** Starts the flow of a run once more; its input and its limits can be changed. */
export function StartAgainDialog({ runId, ...props }: Omit<Props, 'chosen' | 'again'> & { runId: string }) {
  const { data: run } = useQuery(flowRunQuery(props.projectId, runId))
  if (!run) return null
  const isStored = props.flows.some(({ id, enabled }) => id === run.flow_id && enabled)
  return <StartFlowDialog {...props} chosen={isStored ? `flow ${run.flow_id}` : `run ${run.id}`} again={run} />
}

const WAYS: Readonly<Record<string, string>> = { flow: 'flow_id', template: 'template', run: 'rerun_of' }

export function StartFlowDialog({ projectId, flows, templates, chosen, again, onClose }: Props) {
  const navigate = useNavigate()
  const startable = flows.filter(({ enabled }) => enabled)
  const [choice, setChoice] = useState(
    chosen || (startable[0] ? `flow ${startable[0].id}` : `template ${templates[0]?.name ?? ''}`),
  )
  const exampleOf = (wanted: string): string => {
    const template = templates.find(({ name }) => wanted === `template ${name}`)
    return template ? JSON.stringify(template.example.input, null, 2) : ''
  }
  const [input, setInput] = useState(() => textOf(again?.input) || exampleOf(choice))
  const [workers, setWorkers] = useState<number | string>(again?.workers ?? '')
  const [seconds, setSeconds] = useState<number | string>(again ? Math.ceil(again.timeout / 1_000) : '')
  const template = templates.find(({ name }) => choice === `template ${name}`)
  const { write, ...state } = useWrite()
  const start = async (): Promise<void> => {
    const [, kind = '', name] = /^(\w+) (.*)$/.exec(choice) ?? []
    const body = {
      [WAYS[kind] ?? 'template']: name,
      ...inputOf(input),
      ...(workers === '' ? {} : { workers: Number(workers) }),
      ...(seconds === '' ? {} : { timeout: Number(seconds) * 1_000 }),
    }
    const { id } = await startWork<FlowRun>(projectPath(projectId, '/flow-runs'), body)
    await navigate({ to: '/projects/$projectId/flows/$flowRunId', params: { projectId, flowRunId: id } })
  }
  return (
    <FormDialog
      title={again ? 'Run again' : 'Start a flow'}
      action="Start flow"
      isDisabled={choice === ''}
      write={state}
      onSubmit={() => void write(start)}
      onClose={onClose}
    >
      <Select
        label="Flow"
        searchable
        allowDeselect={false}
        data={choicesOf({ flows: startable, templates, chosen, again })}
        value={choice}
        onChange={(value) => {
          if (value === null) return
          // An example goes with its template; what somebody typed stays.
          if (input === exampleOf(choice)) setInput(exampleOf(value))
          setChoice(value)
        }}
      />
      {template && (
        <Text size="sm" className="dim">
          {template.description} {template.usage}
        </Text>
      )}
      <Textarea
        label="Input"
        description="JSON, or a text. Empty: none."
        classNames={{ input: 'mono' }}
        autosize
        minRows={3}
        maxRows={14}
        value={input}
        onChange={(event) => setInput(event.currentTarget.value)}
        data-autofocus
      />
      <Group grow align="flex-start">
        <NumberInput
          label="Workers"
          description="At once. Empty: the usual."
          min={1}
          allowDecimal={false}
          value={workers}
          onChange={setWorkers}
        />
        <NumberInput
          label="Timeout"
          description="In seconds. Empty: the project's."
          min={1}
          value={seconds}
          onChange={setSeconds}
        />
      </Group>
    </FormDialog>
  )
}

/** A flow run without a stored flow is known by its pattern. */
function choicesOf(given: Pick<Props, 'flows' | 'templates' | 'chosen'> & { again: FlowRun | undefined }) {
  const { flows, templates, chosen, again } = given
  const asBefore = { value: chosen, label: `The same ${patternName(again?.pattern ?? '')} flow as before` }
  return [
    ...(chosen.startsWith('run ') ? [{ group: 'As before', items: [asBefore] }] : []),
    { group: 'Flows of this project', items: flows.map(({ id, name }) => ({ value: `flow ${id}`, label: name })) },
    {
      group: 'Templates',
      items: templates.map(({ name, title }) => ({ value: `template ${name}`, label: title })),
    },
  ]
}
