// Reads the components of a layout one by one: a component that this page does not know leaves the others as they are.
import { componentSchema, type LeafComponent } from '../../../../src/kernel/genui.ts'

export type Shown =
  | { kind: 'leaf'; key: string; component: LeafComponent }
  | { kind: 'group'; key: string; title: string | null; children: Shown[] }
  | { kind: 'unknown'; key: string; type: string }

export const readComponents = (components: readonly unknown[]): Shown[] =>
  components.map((component, place) => readOne(component, place))

function readOne(given: unknown, place: number): Shown {
  const { id, type, children } = outlineOf(given)
  const key = `${place} ${id}`
  // The components within a group are read one by one, too.
  const checked = componentSchema.safeParse(children === null ? given : { ...Object(given), components: [] })
  if (!checked.success) return { kind: 'unknown', key, type }
  const component = checked.data
  if (component.type !== 'group') return { kind: 'leaf', key, component }
  return { kind: 'group', key, title: component.title ?? null, children: readComponents(children ?? []) }
}

function outlineOf(given: unknown): { id: string; type: string; children: unknown[] | null } {
  const { id, type, components }: Record<string, unknown> = Object(given)
  return {
    id: typeof id === 'string' ? id : '',
    type: typeof type === 'string' ? type : 'nameless',
    children: type === 'group' && Array.isArray(components) ? components : null,
  }
}

/** The values that the inputs and selects of a layout begin with, and whether they must be given. */
export function fieldsOf(shown: readonly Shown[]): Map<string, { isRequired: boolean }> {
  return new Map(
    shown.flatMap((each): [string, { isRequired: boolean }][] => {
      if (each.kind === 'group') return [...fieldsOf(each.children)]
      if (each.kind === 'unknown') return []
      const { component } = each
      const isField = component.type === 'input' || component.type === 'select'
      return isField ? [[component.id, { isRequired: component.required === true }]] : []
    }),
  )
}
