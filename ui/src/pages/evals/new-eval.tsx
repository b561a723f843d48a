// A new eval: its name, the variants, and the cases as JSON, to which a small form adds.
import { Button, Group, MultiSelect, Select, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { createEval, recordedRunsQuery } from '../../api/evals.ts'
import { systemsQuery } from '../../api/prompts.ts'
import { oneLine } from '../../parts/figures.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { addCase, type Draft, EXAMPLE, readCases } from './case-text.ts'

const BLANK: Draft = { task: '', status: null, contains: '', route: '' }

export function NewEval({ projectId, onClose }: { projectId: string; onClose: () => void }) {
  const navigate = useNavigate()
  const action = useWrite({ reads: [['eval', projectId, 'list']], fields: ['name', 'variants', 'cases'] })
  const systems = useQuery(systemsQuery(projectId))
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState<string[] | null>(null)
  const [text, setText] = useState('')
  const known = systems.data?.items.map(({ variant }) => variant) ?? []
  const variants = chosen ?? known.slice(0, 2)
  const { cases, problem } = readCases(text)
  const isReady = cases !== null && variants.length > 0 && name.trim() !== ''
  return (
    <FormDialog
      title="New eval"
      action="Start eval"
      size="min(820px, 96vw)"
      write={action}
      isDisabled={!isReady}
      isKept={text !== ''}
      onClose={onClose}
      onSubmit={() =>
        cases &&
        void action.write(async () => {
          const { id } = await createEval(projectId, { name: name.trim(), variants, cases })
          await navigate({ to: '/projects/$projectId/evals/$evalId', params: { projectId, evalId: id } })
        })
      }
    >
      <TextInput
        label="Name"
        required
        data-autofocus
        value={name}
        error={action.refused.name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <MultiSelect
        label="Variants"
        description="The others are compared with the first one"
        required
        data={known}
        value={variants}
        onChange={setChosen}
        error={systems.isError ? systems.error.message : action.refused.variants}
      />
      <Textarea
        label="Cases"
        description="A list of tasks, each with what you expect: status, contains, route, max_steps"
        placeholder={EXAMPLE}
        autosize
        minRows={8}
        maxRows={18}
        required
        classNames={{ input: 'mono' }}
        value={text}
        error={text === '' ? null : (problem ?? action.refused.cases)}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {text === '' && (
        <Group>
          <Button size="compact-sm" variant="default" onClick={() => setText(EXAMPLE)}>
            Use the example
          </Button>
        </Group>
      )}
      <AddCase projectId={projectId} text={text} onChange={setText} />
      {cases !== null && variants.length > 0 && (
        <Text size="xs" className="dim number" role="status">
          {cases.length * variants.length} runs: {cases.length} {cases.length === 1 ? 'case' : 'cases'} on{' '}
          {variants.join(', ')}. They make no tasks for people, and tools change nothing.
        </Text>
      )}
    </FormDialog>
  )
}

function AddCase(props: { projectId: string; text: string; onChange: (text: string) => void }) {
  const { projectId, text, onChange } = props
  const [draft, setDraft] = useState(BLANK)
  const [problem, setProblem] = useState<string | null>(null)
  const recorded = useQuery(recordedRunsQuery(projectId))
  const add = (added: Parameters<typeof addCase>[1]): void => {
    const next = addCase(text, added)
    setProblem(next === null ? 'Mend the cases above first.' : null)
    if (next === null) return
    onChange(next)
    if ('contains' in added) setDraft(BLANK)
  }
  const addOnEnter = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    if (draft.task.trim() !== '') add(draft)
  }
  const set = (change: Partial<Draft>): void => setDraft({ ...draft, ...change })
  return (
    <details>
      <summary>Add cases by form</summary>
      <Stack gap="xs" mt="xs">
        <Textarea
          label="Task"
          autosize
          minRows={1}
          maxRows={6}
          value={draft.task}
          onChange={(event) => set({ task: event.currentTarget.value })}
        />
        <Group grow align="flex-start">
          <Select
            label="Expected status"
            placeholder="Anything but FAILED"
            clearable
            data={['DONE', 'ESCALATE', 'FAILED']}
            value={draft.status}
            onChange={(status) => set({ status })}
          />
          <TextInput
            label="Output contains"
            value={draft.contains}
            onChange={(event) => set({ contains: event.currentTarget.value })}
            onKeyDown={addOnEnter}
          />
          <TextInput
            label="Route"
            placeholder="research_agent, transform_agent"
            value={draft.route}
            onChange={(event) => set({ route: event.currentTarget.value })}
            onKeyDown={addOnEnter}
          />
        </Group>
        <Group justify="space-between" align="flex-end">
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<Plus size={13} aria-hidden />}
            disabled={draft.task.trim() === ''}
            onClick={() => add(draft)}
          >
            Add case
          </Button>
          {(recorded.data?.length ?? 0) > 0 && (
            <Select
              label="Add a recorded run"
              description="Its course is the expectation"
              searchable
              selectFirstOptionOnChange
              value={null}
              data={(recorded.data ?? []).map(({ id, input }) => ({ value: id, label: oneLine(input, 80) || id }))}
              onChange={(runId) => runId && add({ run_id: runId })}
            />
          )}
        </Group>
        {problem && (
          <Text size="sm" role="alert" c="var(--failed)">
            {problem}
          </Text>
        )}
      </Stack>
    </details>
  )
}
