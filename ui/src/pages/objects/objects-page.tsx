// The objects of a project: their types, and a table with the columns of the chosen type.
import { Button, Group, TextInput, Title } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Plus, Search } from 'lucide-react'
import { useState } from 'react'
import { objectsQuery, objectTypesQuery } from '../../api/objects.ts'
import { useRole } from '../../app/role.ts'
import { More } from '../../parts/more.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { NewObject } from './new-object.tsx'
import { ObjectTable } from './object-table.tsx'
import classes from './objects.module.css'

const ROUTE = '/projects/$projectId/objects'
const route = getRouteApi(ROUTE)
const TYPING_MS = 300

export function ObjectsPage() {
  const { projectId } = route.useParams()
  const { type, q } = route.useSearch()
  const mayWrite = useRole(projectId) !== 'viewer'
  const [isNew, setIsNew] = useState(false)
  const add = mayWrite && (
    <Button size="xs" leftSection={<Plus size={13} aria-hidden />} onClick={() => setIsNew(true)}>
      New object
    </Button>
  )
  return (
    <>
      <PageHead name="Objects" title={<Title order={1}>Objects</Title>}>
        <Group gap="xs">
          <SearchBox key={projectId} projectId={projectId} type={type} q={q} />
          {add}
        </Group>
      </PageHead>
      <Types projectId={projectId} chosen={type} q={q} />
      <Found key={`${projectId} ${type} ${q}`} projectId={projectId} type={type} q={q} add={add} />
      {isNew && <NewObject projectId={projectId} type={type ?? ''} onClose={() => setIsNew(false)} />}
    </>
  )
}

interface Filter {
  projectId: string
  type: string | undefined
  q: string | undefined
}

const searchOf = ({ type, q }: Pick<Filter, 'type' | 'q'>) => ({ ...(type && { type }), ...(q && { q }) })

function SearchBox({ projectId, type, q }: Filter) {
  const navigate = useNavigate()
  const [text, setText] = useState(q ?? '')
  const search = useDebouncedCallback((words: string) => {
    void navigate({ to: ROUTE, params: { projectId }, search: searchOf({ type, q: words.trim() }), replace: true })
  }, TYPING_MS)
  return (
    <TextInput
      type="search"
      aria-label="Search"
      placeholder="Words in key or properties"
      size="xs"
      w={220}
      maxLength={500}
      leftSection={<Search size={13} aria-hidden />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value)
        search(event.currentTarget.value)
      }}
    />
  )
}

function Types({ projectId, chosen, q }: { projectId: string; chosen: string | undefined; q: string | undefined }) {
  const { data } = useQuery(objectTypesQuery(projectId))
  if (!data || data.types.length === 0) return null
  const total = data.types.reduce((sum, { count }) => sum + count, 0)
  const more = data.isWhole ? '' : '+'
  const known = data.types.some(({ type }) => type === chosen) || chosen === undefined
  const all = [
    { type: undefined, count: total },
    ...data.types,
    // A type without an object among those that were counted.
    ...(known ? [] : [{ type: chosen, count: null }]),
  ]
  return (
    <nav aria-label="Types">
      <ul className={classes.types}>
        {all.map(({ type, count }) => (
          <li key={type ?? ' all'}>
            <Link
              to={ROUTE}
              params={{ projectId }}
              search={searchOf({ type, q })}
              className={classes.type}
              aria-current={type === chosen ? 'true' : undefined}
              activeProps={{ 'aria-current': type === chosen ? 'true' : undefined }}
            >
              <span>{type ?? 'All types'}</span>
              {count !== null && (
                <span className="dim number" title={data.isWhole ? undefined : 'Of the newest thousand objects'}>
                  {count}
                  {more}
                </span>
              )}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}

function Found({ projectId, type, q, add }: Filter & { add: React.ReactNode }) {
  const found = useInfiniteQuery(objectsQuery(projectId, { type, q }))
  if (found.isPending) return <Loading lines={8} />
  if (!found.data)
    return <Failure what="The objects could not be read." error={found.error} onRetry={() => void found.refetch()} />
  const objects = found.data.pages.flatMap(({ items }) => items)
  if (objects.length === 0) {
    return type || q ? (
      <Empty>No object matches.</Empty>
    ) : (
      <Empty action={add}>There is no object yet. Objects are the data that the agents of a project share.</Empty>
    )
  }
  return (
    <>
      {found.isError && <Stale onRetry={() => void found.refetch()} />}
      <ObjectTable projectId={projectId} objects={objects} isOneType={type !== undefined} />
      <More list={found} />
    </>
  )
}
