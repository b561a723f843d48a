// Whether the flow can run, and everything that is wrong with it. Each line leads to its node.
import { Button, UnstyledButton } from '@mantine/core'
import { CircleAlert, CircleCheck, LoaderCircle } from 'lucide-react'
import { isPredicate, withStop } from '../../../../src/kernel/sentence-at.ts'
import classes from './editor.module.css'
import { type PlacedProblem, sentence } from './problems.ts'
import { titleOf, valueAt } from './tree.ts'
import type { Editor } from './use-editor.ts'

const MOST_SHOWN = 50

export function Verdict({ editor }: { editor: Editor }) {
  const { check, problems, warnings } = editor
  return (
    <div role="status" className={classes.verdict}>
      {verdictOf()}
    </div>
  )

  function verdictOf() {
    if (editor.state.problem) return <Said tone="failed" icon={CircleAlert} text="The JSON is not right yet" />
    if (check.error) return <Said tone="blocked" icon={CircleAlert} text="The flow could not be checked" />
    if (problems.length > 0) {
      const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`
      return <Said tone="failed" icon={CircleAlert} text={count} />
    }
    if (check.isPending || !check.isValid) return <Said tone="pending" icon={LoaderCircle} text="Checking" />
    if (warnings.length > 0) {
      const steps = warnings.length === 1 ? 'a step' : 'steps'
      return <Said tone="blocked" icon={CircleAlert} text={`This flow can start, but ${steps} will fail`} />
    }
    return <Said tone="completed" icon={CircleCheck} text="This flow can run" />
  }
}

function Said({ tone, icon: Icon, text }: { tone: string; icon: typeof CircleAlert; text: string }) {
  return (
    <span style={{ color: `var(--${tone})` }} className={classes.said}>
      <Icon size={14} aria-hidden /> {text}
    </span>
  )
}

export function ProblemList({ editor, onGo }: { editor: Editor; onGo: (field: string) => void }) {
  const { problems, warnings, check, dispatch, root } = editor
  if (check.error) {
    return (
      <div className={classes.problems}>
        <span>{check.error.message}</span>
        <Button size="compact-xs" variant="default" onClick={check.retry}>
          Retry
        </Button>
      </div>
    )
  }
  const [shown, label] = problems.length > 0 ? [problems, 'Problems'] : [warnings, 'Warnings']
  if (shown.length === 0) return null
  return (
    <ul className={classes.problems} aria-label={label} data-kind={label}>
      {shown.slice(0, MOST_SHOWN).map((problem) => (
        <li key={`${problem.path} ${problem.message}`}>
          <UnstyledButton
            className={classes.problem}
            onClick={() => {
              dispatch({ type: 'select', path: problem.node })
              onGo(problem.field)
            }}
          >
            <span className={classes.wrong}>{titleOf(valueAt(root, problem.node))}</span>
            <Words of={problem} /> <span className="dim mono">{problem.path}</span>
          </UnstyledButton>
        </li>
      ))}
      {shown.length > MOST_SHOWN && <li className="dim">and {shown.length - MOST_SHOWN} more</li>}
    </ul>
  )
}

/** "prompt must not be empty.", "agent: There is no agent called Gardner." */
function Words({ of: problem }: { of: PlacedProblem }) {
  const field = problem.path.slice(problem.node.length + 1).replace(/^args\./, '')
  if (field === '') return `: ${sentence(problem)}`
  return (
    <>
      {' '}
      <span className="mono">{field}</span>
      {isPredicate(problem.message) ? ` ${withStop(problem.message)}` : `: ${sentence(problem)}`}
    </>
  )
}
