// The fields of a pattern, each by its kind.

import { Autocomplete, NumberInput, Select, Switch, TagsInput, Textarea, TextInput } from '@mantine/core'
import { typedNumber } from '../../parts/typed-number.ts'
import { Hint } from './hint.tsx'
import { useAgentNames } from './leaf-fields.tsx'
import { edgesOf, edgesText, workersOf, workersText } from './list-texts.ts'
import type { PatternField } from './patterns.ts'
import { problemsAt } from './problems.ts'
import { SlotField } from './slot-field.tsx'
import { idsIn, isNode, type TreeNode } from './tree.ts'
import type { Editor } from './use-editor.ts'
import { ValueField } from './value-field.tsx'

export function PatternFieldInput({ editor, node, field }: { editor: Editor; node: TreeNode; field: PatternField }) {
  const { selected, marks, isLocked } = editor
  const { name, kind } = field
  const value = node[name]
  const set = (next: unknown): void => editor.setField(name, next)
  const error = problemsAt(marks, selected, name)
  const shared = { label: field.label, description: <Hint>{field.hint}</Hint>, error, readOnly: isLocked }
  switch (kind) {
    case 'nodes':
    case 'leaves':
    case 'node':
    case 'work':
      return <SlotField editor={editor} node={node} slot={{ ...field, kind }} />
    case 'value':
      return (
        <ValueField
          key={`${selected}.${name}`}
          {...{ label: field.label, hint: field.hint, value, error, isLocked }}
          ids={idsIn(editor.root)}
          onChange={set}
        />
      )
    case 'text':
      return (
        <Textarea
          {...shared}
          autosize
          minRows={name === 'goal' ? 3 : 1}
          maxRows={14}
          value={textOr(value)}
          onChange={(event) => set(orNothing(event.currentTarget.value, field))}
        />
      )
    case 'count':
      return <Count {...shared} value={value} onChange={set} />
    case 'overload':
      return (
        <Count
          {...shared}
          value={isNode(value) ? value.queue_length : undefined}
          onChange={(length) => set(length === undefined ? undefined : { queue_length: length })}
        />
      )
    case 'switch':
      return (
        <Switch
          label={field.label}
          description={shared.description}
          error={error}
          checked={value !== false}
          disabled={isLocked}
          onChange={(event) => set(event.currentTarget.checked ? undefined : false)}
        />
      )
    case 'choice':
      return (
        <Select
          {...shared}
          clearable={!isLocked}
          placeholder="The default"
          data={[...(field.choices ?? [])]}
          value={textOr(value) || null}
          onChange={(next) => set(next ?? undefined)}
        />
      )
    case 'agent':
    case 'agents':
      return <AgentsField {...{ editor, kind, value, set, shared }} />
    case 'workers':
      return (
        <TextInput
          {...shared}
          value={workersText(value)}
          onChange={(event) => set(workersOf(event.currentTarget.value))}
        />
      )
    case 'edges':
      return (
        <Textarea
          {...shared}
          autosize
          placeholder="w1 > w2"
          value={edgesText(value)}
          onChange={(event) => set(edgesOf(event.currentTarget.value))}
        />
      )
  }
}

const textOr = (value: unknown): string => (typeof value === 'string' ? value : '')
const orNothing = (text: string, { isOptional }: PatternField): string | undefined =>
  text === '' && isOptional ? undefined : text

interface Shared {
  label: string
  description: React.ReactNode
  error: string | null
  readOnly: boolean
}

export function Count({
  value,
  onChange,
  min = 1,
  ...shared
}: Shared & { min?: number; value: unknown; onChange: (value: number | string | undefined) => void }) {
  return (
    <NumberInput
      {...shared}
      min={min}
      value={typeof value === 'number' || typeof value === 'string' ? value : ''}
      onChange={(next) => onChange(typedNumber(next) ?? undefined)}
    />
  )
}

function AgentsField(props: {
  editor: Editor
  kind: 'agent' | 'agents'
  value: unknown
  set: (value: unknown) => void
  shared: Shared
}) {
  const { kind, value, set, shared } = props
  const names = useAgentNames(props.editor.projectId)
  if (kind === 'agent') {
    return <Autocomplete {...shared} data={names} limit={50} value={textOr(value)} onChange={set} />
  }
  const list = Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
  return <TagsInput {...shared} data={names} limit={50} allowDuplicates acceptValueOnBlur value={list} onChange={set} />
}
