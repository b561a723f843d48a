// Flows of the project and templates: what each is for, and its start.
import { Button, Stack, Title } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Role } from '../../../../src/kernel/role.ts'
import type { Page } from '../../api/client.ts'
import { type FlowTemplate, patternName, type StoredFlow } from '../../api/flows.ts'
import { Failure, Loading } from '../../parts/states.tsx'
import classes from './flows-page.module.css'

interface Props {
  projectId: string
  flows: UseQueryResult<StoredFlow[]>
  templates: UseQueryResult<Page<FlowTemplate>>
  role: Role
  onStart: (choice: string) => void
}

export function FlowList({ projectId, flows, templates, role, onStart }: Props) {
  const mayStart = role !== 'viewer'
  return (
    <Stack gap="lg">
      <section>
        <Title order={2} mb="xs">
          Flows of this project
        </Title>
        <Listed what="The flows" query={flows} empty="None yet. A new flow is built in the editor, or from a template.">
          {flows.data?.map(({ id, name, root, enabled }) => (
            <Item
              key={id}
              name={
                <Link to="/projects/$projectId/flows/definitions/$flowId" params={{ projectId, flowId: id }}>
                  {name}
                </Link>
              }
              about={enabled ? patternName(root.type ?? '') : 'disabled'}
            >
              {mayStart && enabled && <StartButton name={name} onClick={() => onStart(`flow ${id}`)} />}
            </Item>
          ))}
        </Listed>
      </section>
      <section>
        <Title order={2} mb="xs">
          Templates
        </Title>
        <Listed what="The templates" query={templates} empty="There are none.">
          {templates.data?.items.map(({ name, title, description }) => (
            <Item
              key={name}
              name={
                role === 'admin' ? (
                  <Link to="/projects/$projectId/flows/new" params={{ projectId }} search={{ template: name }}>
                    {title}
                  </Link>
                ) : (
                  title
                )
              }
              about={description}
            >
              {mayStart && <StartButton name={title} onClick={() => onStart(`template ${name}`)} />}
            </Item>
          ))}
        </Listed>
      </section>
    </Stack>
  )
}

function Listed(props: {
  what: string
  query: UseQueryResult<unknown>
  empty: string
  children: ReactNode[] | undefined
}) {
  const { what, query, empty, children = [] } = props
  if (query.isPending) return <Loading lines={3} />
  if (!query.data)
    return <Failure what={`${what} could not be read.`} error={query.error} onRetry={() => void query.refetch()} />
  return children.length === 0 ? <p className="dim">{empty}</p> : <ul className={classes.list}>{children}</ul>
}

function Item({ name, about, children }: { name: ReactNode; about: string; children: ReactNode }) {
  return (
    <li className={classes.item}>
      <div style={{ minWidth: 0 }}>
        <div className="cut">{name}</div>
        <div className={`dim ${classes.about}`}>{about}</div>
      </div>
      {children}
    </li>
  )
}

function StartButton({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <Button size="compact-xs" variant="default" aria-label={`Start ${name}`} onClick={onClick}>
      Start
    </Button>
  )
}
