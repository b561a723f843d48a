// Text of a model, as Markdown. HTML in it is shown letter by letter, and no image of another origin is loaded.
import Markdown, { type Components } from 'react-markdown'
import rehypeSanitize, { defaultSchema } from 'rehype-sanitize'
import remarkGfm from 'remark-gfm'
import classes from './markdown.module.css'

const schema = { ...defaultSchema, tagNames: (defaultSchema.tagNames ?? []).filter((name) => name !== 'img') }

interface Node {
  type: string
  children?: Node[]
}

/** The sanitizer would leave out HTML, and with it a part of the text. */
function htmlAsText() {
  return function turn(node: Node): void {
    if (node.type === 'raw') node.type = 'text'
    for (const child of node.children ?? []) turn(child)
  }
}

const components: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener nofollow">
      {children}
    </a>
  ),
}

export function ModelText({ children }: { children: string }) {
  return (
    <div className={classes.text}>
      <Markdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[htmlAsText, [rehypeSanitize, schema]]}
        components={components}
      >
        {children}
      </Markdown>
    </div>
  )
}
