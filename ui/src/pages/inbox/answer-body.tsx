// A question, an escalation or work for people: the words, a box for the answer, and the way to decline.
import { Button, Group, Textarea } from '@mantine/core'
import { useState } from 'react'
import type { Task } from '../../../../src/kernel/task.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { Prose } from '../../parts/prose.tsx'
import classes from './inbox.module.css'
import type { CardProps } from './inbox-card.tsx'

export function AnswerBody(props: CardProps & { mayDecide: boolean; isQuestion: boolean }) {
  const { task, isOpen, mayDecide, isQuestion, decisions } = props
  const [text, setText] = useState('')
  const isBusy = decisions.busy.has(task.id)
  if (!isOpen) {
    const isUnsent = text.trim() !== '' && decisions.problems.has(task.id)
    return isUnsent ? <Prose>{`Your answer was not sent: ${text}`}</Prose> : null
  }
  const words = restOf(task)
  const send = () =>
    void decisions.settle(
      task,
      { status: 'completed', ...(text.trim() === '' ? {} : { result: text }) },
      isQuestion ? `Answered: ${task.title}` : `Done: ${task.title}`,
    )
  return (
    <>
      {words !== '' && <Prose>{words}</Prose>}
      {mayDecide && (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            send()
          }}
        >
          <Textarea
            label={isQuestion ? 'Your answer' : 'Result'}
            size="xs"
            autosize
            minRows={2}
            maxRows={12}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && text.trim() !== '') send()
            }}
          />
          <Group gap="xs" mt="xs" className={classes.decide ?? ''}>
            <Button type="submit" size="xs" loading={isBusy} disabled={isQuestion && text.trim() === ''}>
              {isQuestion ? 'Answer' : 'Done'}
            </Button>
            <ConfirmButton
              name={isQuestion ? 'Decline' : 'Give up'}
              text={
                task.run_id !== null
                  ? 'The run continues and is told that people declined to answer.'
                  : 'It is closed, and nothing more is done about it.'
              }
              isBusy={isBusy}
              onSure={() => decisions.settle(task, { status: 'cancelled' }, `Closed: ${task.title}`)}
            />
          </Group>
        </form>
      )}
    </>
  )
}

/** Words for callers of the API and for agents; here an answer box stands beside them. */
const FOR_CALLERS = /^Complete this task with advice as the result\b.*$/m

/** The title of a question is its first line. */
function restOf({ title, description }: Task): string {
  const text = description.trim().replace(FOR_CALLERS, 'Answer with advice and the agent tries again.')
  return text.startsWith(title) ? text.slice(title.length).trim() : text
}
