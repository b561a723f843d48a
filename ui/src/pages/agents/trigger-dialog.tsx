// Starts an agent with an input, and leads to the page of the run.

import { NumberInput, SegmentedControl, SimpleGrid, Textarea } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import { agentPath } from '../../api/agents.ts'
import { startWork } from '../../api/client.ts'
import { inSeconds } from '../../api/issues.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { typedMs, typedNumber } from '../../parts/typed-number.ts'
import { useWrite } from '../../parts/use-write.ts'
import { readInput } from './read-input.ts'

export function TriggerDialog({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const [text, setText] = useState('')
  const [format, setFormat] = useState<'text' | 'json'>('text')
  const [steps, setSteps] = useState<number | string>('')
  const [seconds, setSeconds] = useState<number | string>('')
  const [unread, setUnread] = useState<string | null>(null)
  const { start, refused, ...state } = useTrigger(agent)
  const submit = (): void => {
    const read = readInput(text, format)
    setUnread('problem' in read ? read.problem : null)
    if ('problem' in read) return
    start({
      input: read.input,
      ...(steps !== '' && { max_steps: typedNumber(steps) }),
      ...(seconds !== '' && { timeout: typedMs(seconds) }),
    })
  }
  return (
    <FormDialog
      title={`Trigger ${agent.name}`}
      action="Trigger"
      size="lg"
      write={state}
      onSubmit={submit}
      onClose={onClose}
    >
      <SegmentedControl
        aria-label="Format"
        size="xs"
        w="fit-content"
        data={[
          { value: 'text', label: 'Text' },
          { value: 'json', label: 'JSON' },
        ]}
        value={format}
        onChange={(value) => setFormat(value === 'json' ? 'json' : 'text')}
      />
      <Textarea
        label="Input"
        description={format === 'json' ? 'A JSON object.' : 'What it is to do now.'}
        classNames={{ input: format === 'json' ? 'mono' : '' }}
        autosize
        minRows={4}
        maxRows={18}
        value={text}
        error={unread ?? refused.input}
        onChange={(event) => setText(event.currentTarget.value)}
        data-autofocus
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <NumberInput
          label="Step limit"
          placeholder={agent.max_steps === null ? 'No limit' : String(agent.max_steps)}
          min={1}
          value={steps}
          error={refused.max_steps}
          onChange={setSteps}
        />
        <NumberInput
          label="Timeout"
          suffix=" s"
          placeholder={agent.default_timeout === null ? 'No limit' : `${agent.default_timeout / 1_000} s`}
          min={0.001}
          value={seconds}
          error={refused.timeout && inSeconds(refused.timeout)}
          onChange={setSeconds}
        />
      </SimpleGrid>
    </FormDialog>
  )
}

function useTrigger({ project_id: projectId, id }: Agent) {
  const navigate = useNavigate()
  const { write, isBusy, problem, refused } = useWrite({ fields: ['input', 'max_steps', 'timeout'] })
  const go = async (body: object): Promise<void> => {
    const run = await startWork<Run>(agentPath(projectId, id, '/trigger'), body)
    await navigate({ to: '/projects/$projectId/runs/$runId', params: { projectId, runId: run.id } })
  }
  return { start: (body: object) => void write(() => go(body)), isBusy, problem, refused }
}
