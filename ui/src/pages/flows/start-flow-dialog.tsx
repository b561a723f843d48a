// Starts a flow of the project or a template, and leads to the page of its run.
import { Select, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import type { FlowStart } from '../../api/flow-definitions.ts'
import { type FlowTemplate, flowRunQuery, patternName, type StoredFlow } from '../../api/flows.ts'
import { textOf } from '../../parts/flow-input.ts'
import { FlowStartFields, useFlowStart } from '../../parts/flow-start.tsx'
import { FormDialog } from '../../parts/form-dialog.tsx'

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

const WAYS: Readonly<Record<string, keyof FlowStart>> = { flow: 'flow_id', template: 'template', run: 'rerun_of' }

export function StartFlowDialog({ projectId, flows, templates, chosen, again, onClose }: Props) {
  const startable = flows.filter(({ enabled }) => enabled)
  const [choice, setChoice] = useState(
    chosen || (startable[0] ? `flow ${startable[0].id}` : `template ${templates[0]?.name ?? ''}`),
  )
  const exampleOf = (wanted: string): string => {
    const template = templates.find(({ name }) => wanted === `template ${name}`)
    return template ? JSON.stringify(template.example.input, null, 2) : ''
  }
  const { fields, problem, state, start } = useFlowStart(projectId, {
    input: textOf(again?.input) || exampleOf(choice),
    workers: again?.workers,
    seconds: again && again.timeout / 1_000,
  })
  const template = templates.find(({ name }) => choice === `template ${name}`)
  const submit = (): void => {
    const [, kind = '', name] = /^(\w+) (.*)$/.exec(choice) ?? []
    start({ [WAYS[kind] ?? 'template']: name })
  }
  return (
    <FormDialog
      title={again ? 'Run again' : 'Start flow'}
      action="Start flow"
      size="lg"
      isDisabled={problem !== null}
      write={state}
      onSubmit={submit}
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
          if (fields.input === exampleOf(choice)) fields.setInput(exampleOf(value))
          setChoice(value)
        }}
      />
      {template && (
        <Text size="sm" className="dim">
          {template.description} {template.usage}
        </Text>
      )}
      <FlowStartFields fields={fields} />
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
