import { Text } from '@mantine/core'
import type { FlowStart } from '../../api/flow-definitions.ts'
import { textOf } from '../../parts/flow-input.ts'
import { FlowStartFields, useFlowStart } from '../../parts/flow-start.tsx'
import { FormDialog } from '../../parts/form-dialog.tsx'

interface Props {
  projectId: string
  /** A stored flow that is as it was saved, or the tree as it stands in the editor. */
  what: FlowStart
  /** An input to begin with. */
  sketch: unknown
  onClose: () => void
}

export function StartDialog({ projectId, what, sketch, onClose }: Props) {
  const { fields, problem, state, start } = useFlowStart(projectId, { input: textOf(sketch) })
  return (
    <FormDialog
      title="Start flow"
      action="Start flow"
      size="lg"
      write={state}
      isDisabled={problem !== null}
      onSubmit={() => start(what)}
      onClose={onClose}
    >
      {what.flow_id === undefined && (
        <Text size="sm" className="dim">
          The tree is started as it stands here, without being saved. Your changes stay.
        </Text>
      )}
      <FlowStartFields fields={fields} />
    </FormDialog>
  )
}
