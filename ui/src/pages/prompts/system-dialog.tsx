// A system as JSON, and its weight; or a copy of it under another name, with the prompts that the copy needs.

import { Checkbox, NumberInput, Text, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { errorText } from '../../../../src/kernel/error-text.ts'
import type { SystemConfig } from '../../../../src/kernel/supervisor.ts'
import { get } from '../../api/client.ts'
import type { ListedPrompt, Prompt, System } from '../../api/prompt-shapes.ts'
import { savePrompt, saveSystem, variantPath } from '../../api/prompts.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { typedNumber } from '../../parts/typed-number.ts'
import { useWrite } from '../../parts/use-write.ts'
import { editable, partsOf } from './prompt-text.ts'

interface Props {
  projectId: string
  system: System
  prompts: readonly ListedPrompt[]
  isCopy: boolean
  onClose: () => void
}

export function SystemDialog({ projectId, system, prompts, isCopy, onClose }: Props) {
  const { write, refused, ...state } = useWrite({
    reads: [
      ['system', projectId],
      ['prompt', projectId],
    ],
    fields: ['variant', 'traffic'],
  })
  const [name, setName] = useState(isCopy ? '' : system.variant)
  const [traffic, setTraffic] = useState<number | string>(isCopy ? 0 : system.traffic)
  const [json, setJson] = useState(() => editable(system))
  const [takesPrompts, setTakesPrompts] = useState(true)
  const { config, problem } = read(json)
  const save = async (): Promise<System> => {
    const saved = await saveSystem(projectId, name.trim(), { ...config, traffic: typedNumber(traffic) } as SystemConfig) // the API checks it
    if (isCopy && takesPrompts) await copyPrompts(projectId, saved, system.variant, prompts)
    return saved
  }
  const submit = async (): Promise<void> => {
    const isDone = await write(save, ({ variant }) => `The system ${variant} is saved. Runs under way keep theirs.`)
    if (isDone) onClose()
  }
  return (
    <FormDialog
      title={isCopy ? `Copy the system ${system.variant}` : `Edit the system ${system.variant}`}
      action="Save"
      size="min(820px, 96vw)"
      write={state}
      isKept={json !== editable(system)}
      isDisabled={config === null || name.trim() === '' || traffic === ''}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {isCopy && (
        <TextInput
          label="Name"
          description="Of the new variant, like red"
          required
          data-autofocus
          value={name}
          error={refused.variant}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      )}
      <NumberInput
        label="Traffic"
        description="The weight among all variants, for requests that name none"
        min={0}
        value={traffic}
        error={refused.traffic}
        onChange={setTraffic}
      />
      <Textarea
        label="Parts"
        description="As JSON. A model of null is the project's default model."
        autosize
        minRows={10}
        maxRows={22}
        classNames={{ input: 'mono' }}
        error={problem}
        value={json}
        onChange={(event) => setJson(event.currentTarget.value)}
      />
      {isCopy && (
        <Checkbox
          label={`Copy the prompts of ${system.variant}, too`}
          checked={takesPrompts}
          onChange={(event) => setTakesPrompts(event.currentTarget.checked)}
        />
      )}
      <Text size="xs" className="dim">
        Runs under way keep the system with which they started.
      </Text>
    </FormDialog>
  )
}

function read(json: string): { config: object | null; problem: string | null } {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { config: value, problem: null }
    return { config: null, problem: 'This must be an object.' }
  } catch (error) {
    return { config: null, problem: errorText(error) }
  }
}

/** Saves the prompts that the new variant lacks, with the text that the old one has. */
async function copyPrompts(
  projectId: string,
  system: System,
  from: string,
  prompts: readonly ListedPrompt[],
): Promise<void> {
  const lacking = new Set(partsOf(system, prompts).flatMap(({ promptId, isMissing }) => (isMissing ? [promptId] : [])))
  const inOld = new Set(prompts.flatMap((one) => (one.variant_id === from && !one.deleted ? [one.prompt_id] : [])))
  for (const promptId of lacking) {
    if (!inOld.has(promptId)) continue
    const { messages } = await get<Prompt>(variantPath({ projectId, promptId, variantId: from }))
    await savePrompt({ projectId, promptId, variantId: system.variant }, messages, 0)
  }
}
