import { SegmentedControl, Select, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { GraphObject } from '../../../../src/kernel/object.ts'
import { post } from '../../api/client.ts'
import { foundObjectsQuery } from '../../api/objects.ts'
import { projectPath } from '../../api/queries.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { objectName } from './object-words.ts'

export function AddRelationship(props: { projectId: string; object: GraphObject; onClose: () => void }) {
  const { projectId, object, onClose } = props
  const [type, setType] = useState('')
  const [direction, setDirection] = useState('from')
  const [other, setOther] = useState<string | null>(null)
  const { write, refused, ...state } = useWrite({
    reads: [['object', projectId]],
    fields: ['type', 'from_id', 'to_id'],
  })
  const add = async (): Promise<void> => {
    const [from_id, to_id] = direction === 'from' ? [object.id, other] : [other, object.id]
    const body = { type, from_id, to_id }
    const isDone = await write(() => post(projectPath(projectId, '/relationships'), body), 'The relationship is added.')
    if (isDone) onClose()
  }
  return (
    <FormDialog
      title="Add relationship"
      action="Add"
      write={state}
      isDisabled={other === null || type.trim() === ''}
      onSubmit={() => void add()}
      onClose={onClose}
    >
      <TextInput
        label="Type"
        placeholder="works_for"
        required
        maxLength={200}
        value={type}
        error={refused.type}
        onChange={(event) => setType(event.currentTarget.value)}
        data-autofocus
      />
      <SegmentedControl
        size="xs"
        aria-label="Direction"
        data={[
          { value: 'from', label: 'From this object' },
          { value: 'to', label: 'To this object' },
        ]}
        value={direction}
        onChange={setDirection}
      />
      <OtherObject
        projectId={projectId}
        not={object.id}
        value={other}
        problem={refused.from_id ?? refused.to_id}
        onChange={setOther}
      />
    </FormDialog>
  )
}

const TYPING_MS = 250

/** The objects that match the words, or the newest ones. */
function OtherObject(props: {
  projectId: string
  not: string
  value: string | null
  problem: string | undefined
  onChange: (id: string | null) => void
}) {
  const [words, setWords] = useState('')
  const [chosen, setChosen] = useState<{ value: string; label: string } | null>(null)
  const isChosen = chosen !== null && words === chosen.label
  const [asked] = useDebouncedValue(isChosen ? '' : words.trim(), TYPING_MS)
  const found = useQuery({ ...foundObjectsQuery(props.projectId, asked), placeholderData: keepPreviousData })
  const options = (found.data?.items ?? [])
    .filter(({ id }) => id !== props.not && id !== chosen?.value)
    .map((each) => ({ value: each.id, label: `${objectName(each)} · ${each.type}` }))
  return (
    <Select
      label="Object"
      placeholder="Search by key or properties"
      required
      searchable
      selectFirstOptionOnChange
      clearable
      data={[...(chosen ? [chosen] : []), ...options]}
      filter={({ options: all }) => all}
      searchValue={words}
      onSearchChange={setWords}
      value={props.value}
      error={props.problem}
      nothingFoundMessage={found.isFetching ? 'Searching…' : 'No object matches.'}
      onChange={(id, option) => {
        setChosen(option === null ? null : { value: option.value, label: option.label })
        props.onChange(id)
      }}
    />
  )
}
