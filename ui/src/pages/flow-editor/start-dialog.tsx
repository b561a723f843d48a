import { Group, NumberInput, Text, Textarea } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type FlowStart, startDefinition } from '../../api/flow-definitions.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { parseJson } from './json-text.ts'

interface Props {
  projectId: string
  /** A stored flow that is as it was saved, or the tree as it stands in the editor. */
  what: Pick<FlowStart, 'flow_id' | 'root'>
  /** An input to begin with. */
  sketch: unknown
  onClose: () => void
}

const EMPTY = /^\s*$/

export function StartDialog({ projectId, what, sketch, onClose }: Props) {
  const navigate = useNavigate()
  const [input, setInput] = useState(sketch === null || sketch === undefined ? '' : JSON.stringify(sketch, null, 2))
  const [workers, setWorkers] = useState<number | string>('')
  const [seconds, setSeconds] = useState<number | string>('')
  const { write, ...state } = useWrite()
  const parsed = EMPTY.test(input) ? null : parseJson(input)
  const wrong = parsed && 'problem' in parsed ? parsed.problem : null
  const start = async (): Promise<void> => {
    const { id: flowRunId } = await startDefinition(projectId, {
      ...what,
      ...(parsed && 'value' in parsed ? { input: parsed.value } : {}),
      ...(workers === '' ? {} : { workers: Number(workers) }),
      ...(seconds === '' ? {} : { timeout: Number(seconds) * 1_000 }),
    })
    // Changes that are not saved are kept as a draft, so nothing is lost here.
    await navigate({
      to: '/projects/$projectId/flows/$flowRunId',
      params: { projectId, flowRunId },
      ignoreBlocker: true,
    })
  }
  return (
    <FormDialog
      title="Start flow"
      action="Start flow"
      size="lg"
      write={state}
      isDisabled={wrong !== null}
      onSubmit={() => void write(start)}
      onClose={onClose}
    >
      {what.flow_id === undefined && (
        <Text size="sm" className="dim">
          The tree is started as it stands here, without being saved. Your changes stay.
        </Text>
      )}
      <Textarea
        label="Input"
        description="JSON, such as a text in quotation marks or an object. Empty: no input."
        autosize
        minRows={5}
        maxRows={18}
        classNames={{ input: 'mono' }}
        spellCheck={false}
        value={input}
        error={wrong && `Line ${wrong.line}, column ${wrong.column}: ${wrong.message}`}
        onChange={(event) => setInput(event.currentTarget.value)}
        data-autofocus
      />
      <Group grow align="flex-start">
        <NumberInput
          label="Workers"
          description="The most leaves under way at once. Empty: the default."
          min={1}
          max={10_000}
          allowDecimal={false}
          value={workers}
          onChange={setWorkers}
        />
        <NumberInput
          label="Timeout"
          description="In seconds. Empty: the project's setting."
          min={1}
          allowDecimal={false}
          value={seconds}
          onChange={setSeconds}
        />
      </Group>
    </FormDialog>
  )
}
