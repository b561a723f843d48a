// Work that cannot be continued and would start over: every call made so far, and the decision.
import { Button, Group } from '@mantine/core'
import { isRecord } from '../../../../src/kernel/is-record.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import classes from './inbox.module.css'
import type { CardProps } from './inbox-card.tsx'
import { MadeCalls, type ShownCall } from './made-calls.tsx'

export function AnewBody({ task, isOpen, mayDecide, decisions }: CardProps & { mayDecide: boolean }) {
  if (!isOpen) return null
  const calls = callsOf(task)
  const isBusy = decisions.busy.has(task.id)
  const decide = (result: 'again' | 'stop', words: string): void =>
    void decisions.settle(task, { status: 'completed', result }, words)
  return (
    <>
      <p>The work cannot be continued and would start over. {aboutCalls(calls)}</p>
      <MadeCalls of={calls} name="Calls so far" />
      <p className="dim">
        Start over: the agent begins from the start and is told about these calls. Stop: nothing more is called, and the
        work stays blocked.
      </p>
      {mayDecide && (
        <Group gap="xs" className={classes.decide ?? ''}>
          <Button
            size="xs"
            variant="default"
            loading={isBusy}
            onClick={() => decide('again', 'The work starts over and is told about the calls.')}
          >
            Start over
          </Button>
          <Button
            size="xs"
            variant="default"
            loading={isBusy}
            onClick={() => decide('stop', 'The work does not start over.')}
          >
            Stop
          </Button>
        </Group>
      )}
    </>
  )
}

function aboutCalls(calls: readonly ShownCall[]): string {
  const isOne = calls.length === 1
  const unknown = calls.filter(({ isFinished }) => !isFinished).length
  const made =
    unknown === 0
      ? `${isOne ? 'was' : 'were'} made`
      : unknown === calls.length
        ? 'may have been made'
        : 'were made, or may have been'
  return `${isOne ? 'This call' : 'These calls'} ${made}, and may then be made a second time:`
}

/** Metadata is not checked by the API, so each call is read field by field. Calls of earlier releases have no is_finished. */
function callsOf({ metadata }: Task): ShownCall[] {
  const calls = Array.isArray(metadata.calls) ? metadata.calls.filter(isRecord) : []
  return calls.map(({ tool, args, result, key, at, is_finished: isFinished }) => ({
    tool: String(tool),
    args,
    result,
    key: String(key ?? ''),
    at: typeof at === 'string' ? at : null,
    isFinished: typeof isFinished === 'boolean' ? isFinished : result != null,
  }))
}
