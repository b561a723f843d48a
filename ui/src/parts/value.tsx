// A value of any shape: a text as it is, all else as indented JSON.
import classes from './value.module.css'

const MOST = 20_000

export function Value({ of }: { of: unknown }) {
  const text = typeof of === 'string' ? of : (JSON.stringify(of, null, 2) ?? '')
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <pre className={classes.value} tabIndex={0}>
      {text.length > MOST ? `${text.slice(0, MOST)}\n… ${text.length - MOST} more characters` : text}
    </pre>
  )
}
