import { Select, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { definitionsQuery, templateDefinitionsQuery } from '../../api/flow-definitions.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { idsIn, isNode, type TreeNode } from './tree.ts'
import { type Edit, withNewIds } from './tree-edits.ts'

interface Props {
  projectId: string
  root: unknown
  editOf: (node: TreeNode) => Edit | null
  onInsert: (edit: Edit | null) => void
  onClose: () => void
}

/** Inserts a copy of the tree of a stored flow or of a template. */
export function InsertDialog({ projectId, root, editOf, onInsert, onClose }: Props) {
  const flows = useQuery(definitionsQuery(projectId))
  const templates = useQuery(templateDefinitionsQuery(projectId))
  const [chosen, setChosen] = useState<string | null>(null)
  const trees = [
    ...(flows.data ?? []).map((each) => ({ value: `flow ${each.id}`, label: each.name, root: each.root })),
    ...(templates.data?.items ?? []).map((each) => ({
      value: `template ${each.name}`,
      label: each.title,
      root: each.root,
    })),
  ]
  const stored = trees.filter(({ value }) => value.startsWith('flow '))
  const given = trees.filter(({ value }) => value.startsWith('template '))
  const tree = trees.find(({ value }) => value === chosen)?.root
  const edit = isNode(tree) ? editOf(withNewIds(tree, idsIn(root))) : null
  const problem = flows.error ?? templates.error
  return (
    <FormDialog
      title="Insert a copy"
      action="Insert"
      write={{ isBusy: false, problem: problem?.message ?? null }}
      isDisabled={!edit}
      onSubmit={() => {
        onInsert(edit)
        onClose()
      }}
      onClose={onClose}
    >
      <Select
        label="Flow"
        description="The copy is yours: later changes of the original do not touch it."
        searchable
        data-autofocus
        data={[
          { group: 'Flows of this project', items: stored.map(({ value, label }) => ({ value, label })) },
          { group: 'Templates', items: given.map(({ value, label }) => ({ value, label })) },
        ]}
        value={chosen}
        onChange={setChosen}
      />
      {tree !== undefined && !edit && <Text size="sm">This tree does not fit here: the place takes a leaf only.</Text>}
    </FormDialog>
  )
}
