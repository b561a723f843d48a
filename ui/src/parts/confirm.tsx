// Asks once before an act that cannot be taken back, and does it.
import { Button, Text } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { FormDialog } from './form-dialog.tsx'
import { useWrite } from './use-write.ts'

export interface Question {
  title: string
  text: ReactNode
  /** The name of the button that says yes. */
  action: string
  /** The name of the button that says no. */
  refusal?: string
  isHarmless?: boolean
  /** Does it. The dialog closes unless this throws. */
  onYes: () => Promise<unknown>
}

export function Confirm({ question, onClose }: { question: Question | null; onClose: () => void }) {
  return question && <Asked key={question.title} question={question} onClose={onClose} />
}

function Asked({ question, onClose }: { question: Question; onClose: () => void }) {
  const write = useWrite()
  const say = async (): Promise<void> => {
    if (await write.write(question.onYes)) onClose()
  }
  return (
    <FormDialog
      title={question.title}
      action={question.action}
      {...(question.refusal !== undefined && { refusal: question.refusal })}
      isDestructive={!question.isHarmless}
      write={write}
      onClose={onClose}
      onSubmit={() => void say()}
    >
      <Text size="sm" component="div">
        {question.text}
      </Text>
    </FormDialog>
  )
}

interface ButtonProps {
  name: string
  title?: string
  text: string
  icon?: ReactNode
  isBusy?: boolean
  onSure: () => Promise<unknown>
}

/** A button that asks once before it acts. */
export function ConfirmButton({ name, title = `${name}?`, text, icon, isBusy = false, onSure }: ButtonProps) {
  const [question, setQuestion] = useState<Question | null>(null)
  return (
    <>
      <Button
        size="xs"
        variant="default"
        loading={isBusy}
        leftSection={icon}
        onClick={() => setQuestion({ title, text, action: name, onYes: onSure })}
      >
        {name}
      </Button>
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </>
  )
}
