// Edits properties as a form, one field per property, or as JSON. Problems stand beside their fields.
import {
  ActionIcon,
  Button,
  Checkbox,
  Group,
  SegmentedControl,
  Select,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core'
import { Plus, X } from 'lucide-react'
import {
  addField,
  changeField,
  type Draft,
  type Field,
  type FieldKind,
  fieldKinds,
  type Problems,
  removeField,
} from './draft.ts'
import classes from './objects.module.css'

interface Props {
  draft: Draft
  problems: Problems
  onChange: (draft: Draft) => void
  onMode: (mode: Draft['mode']) => void
}

export function PropertiesEditor({ draft, problems, onChange, onMode }: Props) {
  return (
    <Stack gap="sm">
      <SegmentedControl
        size="xs"
        aria-label="Edit as"
        data={[
          { value: 'form', label: 'Form' },
          { value: 'json', label: 'JSON' },
        ]}
        value={draft.mode}
        onChange={(mode) => onMode(mode === 'json' ? 'json' : 'form')}
        style={{ alignSelf: 'flex-start' }}
      />
      {draft.mode === 'json' ? (
        <Textarea
          label="Properties"
          description="A JSON object."
          autosize
          minRows={6}
          maxRows={20}
          classNames={{ input: 'mono' }}
          spellCheck={false}
          value={draft.json}
          error={problems.get('json')}
          onChange={(event) => onChange({ ...draft, json: event.currentTarget.value })}
        />
      ) : (
        <FormFields draft={draft} problems={problems} onChange={onChange} />
      )}
    </Stack>
  )
}

function FormFields({ draft, problems, onChange }: Omit<Props, 'onMode'>) {
  return (
    <>
      {problems.has('json') && (
        <Text size="sm" role="alert" c="var(--failed)">
          {problems.get('json')}
        </Text>
      )}
      {draft.fields.map((field) => (
        <div key={field.id} className={classes.field}>
          {field.isNew && (
            <NewName
              field={field}
              problem={problems.get(`name ${field.id}`)}
              onChange={(change) => onChange(changeField(draft, field.id, change))}
              onRemove={() => onChange(removeField(draft, field.id))}
            />
          )}
          <ValueInput
            field={field}
            problem={problems.get(`value ${field.id}`)}
            onChange={(text) => onChange(changeField(draft, field.id, { text }))}
          />
        </div>
      ))}
      <Button
        size="compact-sm"
        variant="default"
        leftSection={<Plus size={13} aria-hidden />}
        style={{ alignSelf: 'flex-start' }}
        onClick={() => onChange(addField(draft))}
      >
        Add property
      </Button>
    </>
  )
}

const START: Record<FieldKind, string> = { text: '', number: '', 'yes or no': 'false', JSON: 'null' }

function NewName(props: {
  field: Field
  problem: string | undefined
  onChange: (change: Partial<Field>) => void
  onRemove: () => void
}) {
  const { field, problem, onChange, onRemove } = props
  return (
    <Group gap="xs" align="flex-end" wrap="nowrap" mb={4}>
      <TextInput
        label="Property"
        size="xs"
        style={{ flex: 1 }}
        value={field.name}
        error={problem}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
      />
      <Select
        aria-label="Kind of the value"
        size="xs"
        w={104}
        allowDeselect={false}
        data={[...fieldKinds]}
        value={field.kind}
        onChange={(kind) => kind && onChange({ kind, text: START[kind] })}
      />
      <ActionIcon variant="subtle" color="gray" aria-label="Leave it out" onClick={onRemove}>
        <X size={14} aria-hidden />
      </ActionIcon>
    </Group>
  )
}

function ValueInput(props: { field: Field; problem: string | undefined; onChange: (text: string) => void }) {
  const { field, problem, onChange } = props
  const label = field.isNew ? 'Value' : field.name
  if (field.kind === 'yes or no') {
    return (
      <Checkbox
        size="xs"
        label={label}
        checked={field.text === 'true'}
        error={problem}
        onChange={(event) => onChange(String(event.currentTarget.checked))}
      />
    )
  }
  if (field.kind === 'number') {
    return (
      <TextInput
        size="xs"
        label={label}
        inputMode="decimal"
        value={field.text}
        error={problem}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    )
  }
  return (
    <Textarea
      size="xs"
      label={label}
      autosize
      minRows={1}
      maxRows={12}
      value={field.text}
      error={problem}
      {...(field.kind === 'JSON' && { classNames: { input: 'mono' }, spellCheck: false })}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}
