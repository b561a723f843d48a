import { TextInput } from '@mantine/core'
import { useState } from 'react'
import type { Task } from '../../../../src/kernel/task.ts'
import { suggestedCall } from '../../api/task-words.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { useWrite } from '../../parts/use-write.ts'

const MOST_CHARACTERS = 20_000

interface Props {
  task: Task
  onClose: () => void
  onReject: (reason: string) => Promise<void>
}

/** Asks for the reason. Enter rejects. */
export function RejectDialog({ task, onClose, onReject }: Props) {
  const [reason, setReason] = useState('')
  const { write, ...state } = useWrite()
  const isCall = suggestedCall(task) !== null
  return (
    <FormDialog
      title={isCall ? 'Reject this call?' : 'Reject this suggestion?'}
      action="Reject"
      isDestructive
      returnsFocus={false}
      write={state}
      onSubmit={() => void write(() => onReject(reason))}
      onClose={onClose}
    >
      <span className="dim">{showMarks(task.title)}</span>
      <TextInput
        label="Reason"
        description={isCall ? 'Optional. The agent sees it.' : 'Optional. It is kept with the suggestion.'}
        maxLength={MOST_CHARACTERS}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        data-autofocus
      />
    </FormDialog>
  )
}
