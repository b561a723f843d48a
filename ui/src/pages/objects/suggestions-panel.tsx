// Changes of this object that agents have suggested and that nobody has decided on.
import { Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { openSuggestionsQuery } from '../../api/objects.ts'
import { oneLine } from '../../parts/figures.ts'
import { touches } from './object-words.ts'
import classes from './objects.module.css'

export function SuggestionsPanel({ projectId, objectId }: { projectId: string; objectId: string }) {
  const tasks = useQuery(openSuggestionsQuery(projectId))
  const open = tasks.data?.items.filter((task) => touches(task, objectId)) ?? []
  if (open.length === 0) return null
  return (
    <section className={classes.panel} aria-label="Suggestions">
      <Title order={2} mb="xs">
        Suggestions
      </Title>
      <ul className={classes.list}>
        {open.map(({ id, title, reasoning }) => (
          <li key={id} className={classes.entry}>
            <Link to="/projects/$projectId/inbox" params={{ projectId }} search={{ item: id }}>
              {oneLine(title)}
            </Link>
            {reasoning && (
              <Text size="sm" className="dim">
                {oneLine(reasoning, 300)}
              </Text>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
