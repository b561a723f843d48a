/** A hint, in which words between backticks are shown as code. */
export function Hint({ children }: { children: string }) {
  return children.split('`').map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text never change their order
      <code key={index} className="mono">
        {part}
      </code>
    ),
  )
}
