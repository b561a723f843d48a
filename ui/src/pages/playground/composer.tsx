import { Button, Group, Textarea } from '@mantine/core'
import { CircleStop, SendHorizontal } from 'lucide-react'
import { useState } from 'react'
import classes from './chat.module.css'

interface Props {
  isBusy: boolean
  /** The supervisor waits for an answer. */
  asks: boolean
  onSend: (text: string) => void
  onStop: () => void
}

/** Enter sends, and Shift with Enter begins a new line. */
export function Composer({ isBusy, asks, onSend, onStop }: Props) {
  const [text, setText] = useState('')
  const send = (): void => {
    if (isBusy || text.trim() === '') return
    onSend(text.trim())
    setText('')
  }
  return (
    <form
      className={classes.composer}
      data-tour="message"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <Textarea
        label="Message"
        placeholder={asks ? 'Your answer' : 'A task for the supervisor'}
        autosize
        minRows={2}
        maxRows={10}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
          event.preventDefault()
          send()
        }}
      />
      <Group justify="flex-end" gap="xs">
        {isBusy && (
          <Button size="xs" variant="default" leftSection={<CircleStop size={13} aria-hidden />} onClick={onStop}>
            Stop
          </Button>
        )}
        <Button
          size="xs"
          type="submit"
          disabled={isBusy || text.trim() === ''}
          leftSection={<SendHorizontal size={13} aria-hidden />}
        >
          Send
        </Button>
      </Group>
    </form>
  )
}
