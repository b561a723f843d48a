// Every case with its outcome in each variant; open, it shows what each variant answered and why it passed or not.
import { Button, Group, SegmentedControl, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { CircleCheck, CircleDashed, CircleX, LoaderCircle } from 'lucide-react'
import { useMemo, useState } from 'react'
import type { CaseResult, Eval } from '../../../../src/kernel/eval.ts'
import { TextDiff } from '../../parts/diff.tsx'
import { duration, oneLine, tokens } from '../../parts/figures.ts'
import { Value } from '../../parts/value.tsx'
import classes from './evals.module.css'
import { type CaseRow, casesOf, filterCases, SHOWN, type Shown, wordOf } from './verdict.ts'

/** At first this many cases are shown, and as many more with each press of "More". */
const CASES = 50

export function Cases({ one }: { one: Eval }) {
  const [shown, setShown] = useState<Shown>('all')
  // Rows that somebody watches keep their places, also when the last result comes.
  const [isRanked, setIsRanked] = useState(one.status !== 'running')
  const [most, setMost] = useState(CASES)
  const rows = useMemo(() => casesOf(one, isRanked), [one, isRanked])
  const matching = filterCases(rows, shown)
  const choose = (value: string): void => {
    setShown(SHOWN.find((each) => each === value) ?? 'all')
    setIsRanked(one.status !== 'running')
    setMost(CASES)
  }
  return (
    <section aria-label="Cases">
      <Group justify="space-between" mb="xs" gap="xs">
        <Title order={2}>Cases</Title>
        <SegmentedControl
          aria-label="Shown cases"
          size="xs"
          value={shown}
          onChange={choose}
          data={SHOWN.filter((each) => each !== 'under way' || one.status === 'running').map((each) => ({
            value: each,
            label: `${each === 'all' ? 'All' : each[0]?.toUpperCase() + each.slice(1)} ${filterCases(rows, each).length}`,
          }))}
        />
      </Group>
      {matching.length === 0 ? (
        <Text className="dim" py="md">
          {shown === 'changed' ? 'Every case ends alike in all variants so far.' : 'No case is like this.'}
        </Text>
      ) : (
        <ol className={classes.cases} aria-label="Case list">
          {matching.slice(0, most).map((row) => (
            <Case key={row.index} row={row} one={one} />
          ))}
        </ol>
      )}
      {matching.length > most && (
        <Button mt="xs" size="compact-sm" variant="default" onClick={() => setMost(most + CASES)}>
          More
        </Button>
      )}
    </section>
  )
}

function Case({ row, one }: { row: CaseRow; one: Eval }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <li className={classes.case}>
      <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary>
          <span className="dim number">{row.index + 1}</span>
          <span className="cut">{oneLine(row.task)}</span>
          {row.isChanged && <span className={classes.changed}>changed</span>}
          <span className={classes.outcomes}>
            {one.compared.map((name, place) => (
              <Outcome key={name} name={name} result={row.results[place] ?? null} />
            ))}
          </span>
        </summary>
        {isOpen && <OpenCase row={row} one={one} />}
      </details>
    </li>
  )
}

const LOOKS = {
  passed: { icon: CircleCheck, tone: 'completed' },
  failed: { icon: CircleX, tone: 'failed' },
  running: { icon: LoaderCircle, tone: 'running' },
  pending: { icon: CircleDashed, tone: 'pending' },
} as const

function Outcome({ name, result }: { name: string; result: CaseResult | null }) {
  const word = wordOf(result)
  const { icon: Icon, tone } = LOOKS[word]
  return (
    <span className={classes.outcome}>
      <span className="dim">{name}</span>
      <span className={classes.outcome} style={{ color: `var(--${tone})` }}>
        <Icon size={14} aria-hidden />
        {word}
      </span>
    </span>
  )
}

function OpenCase({ row, one }: { row: CaseRow; one: Eval }) {
  const [first, second] = row.results
  return (
    <div className={classes.open}>
      <div>
        <Text size="xs" className="dim">
          Task
        </Text>
        <Value of={row.task} />
      </div>
      <div className={classes.sides}>
        {one.compared.map((name, place) => (
          <Side key={name} name={name} result={row.results[place] ?? null} projectId={one.project_id} />
        ))}
      </div>
      {first?.output && second?.output && first.output !== second.output && (
        <details>
          <summary className="dim">The outputs compared</summary>
          <TextDiff
            before={first.output}
            after={second.output}
            names={[one.compared[0] ?? '', one.compared[1] ?? '']}
          />
        </details>
      )}
      {first?.run_id && second?.run_id && (
        <Link
          to="/projects/$projectId/runs/$runId/compare/$otherId"
          params={{ projectId: one.project_id, runId: first.run_id, otherId: second.run_id }}
        >
          Compare the runs of {one.compared[0]} and {one.compared[1]}
        </Link>
      )}
    </div>
  )
}

function Side({ name, result, projectId }: { name: string; result: CaseResult | null; projectId: string }) {
  return (
    <section className={classes.side} aria-label={`Outcome of ${name}`}>
      <Group justify="space-between" gap="xs">
        <Outcome name={name} result={result} />
        {result?.run_id && (
          <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: result.run_id }}>
            Run of {name}
          </Link>
        )}
      </Group>
      {result && (
        <>
          {result.reason && (
            <p className={classes.reason} style={{ color: 'var(--failed)' }}>
              {result.reason}
            </p>
          )}
          <Text size="sm" className="dim number">
            {[
              result.status,
              result.latency === null ? null : duration(result.latency),
              result.tokens === null ? null : `${tokens(result.tokens)} tokens`,
            ]
              .filter((fact) => fact !== null)
              .join(' · ')}
          </Text>
          <Text size="sm" className="dim" style={{ overflowWrap: 'anywhere' }}>
            Route: {result.route.length === 0 ? 'nobody' : result.route.join(' → ')}
          </Text>
          {result.output !== null && <Value of={result.output} />}
        </>
      )}
    </section>
  )
}
