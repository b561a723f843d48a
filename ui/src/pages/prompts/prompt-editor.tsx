// The next version of a variant, a new variant, or a new prompt.
import { ActionIcon, Button, Group, Select, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { Plus, Trash2 } from 'lucide-react'
import { useDeferredValue, useState } from 'react'
import type { PromptMessage } from '../../../../src/kernel/prompt.ts'
import { ApiError } from '../../api/client.ts'
import type { Prompt } from '../../api/prompt-shapes.ts'
import { savePrompt, type VariantKey } from '../../api/prompts.ts'
import { TextDiff } from '../../parts/diff.tsx'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { textOf, unknownVariables, VARIABLES } from './prompt-text.ts'
import classes from './prompts.module.css'

export type Edited =
  | { type: 'version'; key: VariantKey; prompt: Prompt }
  | { type: 'new variant'; key: VariantKey; prompt: Prompt }
  | { type: 'new prompt'; projectId: string }

interface Props {
  of: Edited
  onClose: () => void
  onSaved?: (key: VariantKey) => void
}

interface Draft extends PromptMessage {
  id: number
}

const BLANK: PromptMessage[] = [
  { role: 'system', content: '' },
  { role: 'user', content: '{{USER_INPUT}}' },
]

const withIds = (messages: readonly PromptMessage[]): Draft[] => messages.map((message, id) => ({ ...message, id }))

const TITLES = { version: 'Edit', 'new variant': 'New variant', 'new prompt': 'New prompt' }

export function PromptEditor({ of, onClose, onSaved }: Props) {
  const projectId = of.type === 'new prompt' ? of.projectId : of.key.projectId
  const before = of.type === 'new prompt' ? BLANK : of.prompt.messages
  const [name, setName] = useState(of.type === 'new prompt' ? '' : of.key.promptId)
  const [variant, setVariant] = useState(
    of.type === 'version' ? of.key.variantId : of.type === 'new prompt' ? 'blue' : '',
  )
  const [drafts, setDrafts] = useState(() => withIds(before))
  const messages = drafts.map(({ role, content }) => ({ role, content }))
  const { problem, refused, error, isBusy, write } = useWrite({
    reads: [['prompt', projectId]],
    fields: ['prompt_id', 'variant_id', ...drafts.map((_, place) => textPath(place))],
  })
  const newer = newerVersion(error instanceof ApiError ? error.details : null)
  const isTaken = of.type !== 'version' && newer !== null
  const save = async (expected: number): Promise<void> => {
    const key = { projectId, promptId: name.trim(), variantId: variant.trim() }
    const isDone = await write(
      () => savePrompt(key, messages, expected),
      ({ version }) => `Version ${version} of ${key.promptId}, ${key.variantId}, is saved.`,
    )
    if (!isDone) return
    onClose()
    onSaved?.(key)
  }
  const isEmpty = messages.some(({ content }) => content === '') || name.trim() === '' || variant.trim() === ''
  return (
    <FormDialog
      title={of.type === 'version' ? `Edit ${of.key.promptId}, ${of.key.variantId}` : TITLES[of.type]}
      action="Save"
      size="min(960px, 96vw)"
      write={{ isBusy, problem: isTaken ? `${name} has a variant ${variant} already. Choose another name.` : problem }}
      isDisabled={isEmpty}
      isKept={textOf(messages) !== textOf(before)}
      onClose={onClose}
      onSubmit={() => void save(of.type === 'version' ? of.prompt.version : 0)}
      more={
        of.type === 'version' &&
        newer !== null && (
          <Button size="xs" variant="light" color="yellow" onClick={() => void save(newer)}>
            Save over version {newer}
          </Button>
        )
      }
    >
      {of.type !== 'version' && (
        <Group grow align="flex-start">
          <TextInput
            label="Name"
            description="Letters, digits and _ . -"
            required
            disabled={of.type === 'new variant'}
            value={name}
            error={refused.prompt_id}
            onChange={(event) => setName(event.currentTarget.value)}
            {...(of.type === 'new prompt' && { 'data-autofocus': true })}
          />
          <TextInput
            label="Variant"
            description="A system reads its prompts in the variant of its own name"
            required
            value={variant}
            error={refused.variant_id}
            onChange={(event) => setVariant(event.currentTarget.value)}
            {...(of.type === 'new variant' && { 'data-autofocus': true })}
          />
        </Group>
      )}
      <Messages drafts={drafts} refused={refused} onChange={setDrafts} />
      <Hints messages={messages} />
      {of.type !== 'new prompt' && <Preview before={textOf(before)} after={textOf(messages)} />}
    </FormDialog>
  )
}

/** The version that somebody else saved meanwhile, as a conflict tells. */
function newerVersion(details: unknown): number | null {
  if (typeof details !== 'object' || details === null || !('version' in details)) return null
  return typeof details.version === 'number' ? details.version : null
}

const textPath = (place: number): string => `messages.${place}.content`

interface MessagesProps {
  drafts: readonly Draft[]
  refused: Readonly<Record<string, string>>
  onChange: (drafts: Draft[]) => void
}

function Messages({ drafts, refused, onChange }: MessagesProps) {
  const set = (id: number, change: Partial<PromptMessage>): void =>
    onChange(drafts.map((draft) => (draft.id === id ? { ...draft, ...change } : draft)))
  return (
    <Stack gap="sm">
      {drafts.map(({ id, role, content }, place) => (
        <div key={id}>
          <Group gap="xs" mb={4} justify="space-between">
            <Select
              aria-label={`Role of message ${place + 1}`}
              size="xs"
              w={110}
              allowDeselect={false}
              data={['system', 'user']}
              value={role}
              onChange={(value) => set(id, { role: value === 'user' ? 'user' : 'system' })}
            />
            {drafts.length > 1 && (
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Remove message ${place + 1}`}
                onClick={() => onChange(drafts.filter((draft) => draft.id !== id))}
              >
                <Trash2 size={14} aria-hidden />
              </ActionIcon>
            )}
          </Group>
          <Textarea
            aria-label={`Text of message ${place + 1}`}
            autosize
            minRows={3}
            maxRows={18}
            required
            classNames={{ input: 'mono' }}
            value={content}
            error={refused[textPath(place)]}
            onChange={(event) => set(id, { content: event.currentTarget.value })}
          />
        </div>
      ))}
      <Group>
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<Plus size={13} aria-hidden />}
          onClick={() =>
            onChange([...drafts, { id: Math.max(...drafts.map(({ id }) => id)) + 1, role: 'user', content: '' }])
          }
        >
          Add a message
        </Button>
      </Group>
    </Stack>
  )
}

function Hints({ messages }: { messages: readonly PromptMessage[] }) {
  const unknown = unknownVariables(messages)
  return (
    <div>
      <Text size="xs" className="dim">
        {Object.entries(VARIABLES).map(([name, meaning], place) => (
          <span key={name}>
            {place > 0 && '; '}
            <span className="mono">{`{{${name}}}`}</span> {meaning}
          </span>
        ))}
        .
      </Text>
      {unknown.length > 0 && (
        <Text size="xs" role="status" className={classes.note}>
          {unknown.map((name) => `{{${name}}}`).join(', ')}: not a variable. It is sent unchanged.
        </Text>
      )}
    </div>
  )
}

function Preview({ before, after }: { before: string; after: string }) {
  const shown = useDeferredValue(after)
  if (shown === before) return null
  return (
    <details open>
      <summary className="dim">What changes</summary>
      <TextDiff before={before} after={shown} names={['Before', 'After']} isFolded isSideBySide={false} />
    </details>
  )
}
