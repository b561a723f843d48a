interface Tool {
  name: string
  hash: string
  description: string
}

export interface ToolChange {
  change: 'new' | 'changed' | 'gone'
  tool: Tool
}

/** Compares the tools that were approved with those that are offered. Unchanged ones are left out. */
export function toolChanges(approved: readonly Tool[], offered: readonly Tool[]): ToolChange[] {
  const before = new Map(approved.map((tool) => [tool.name, tool.hash]))
  const now = new Set(offered.map(({ name }) => name))
  return [
    ...offered.flatMap<ToolChange>((tool) => {
      const hash = before.get(tool.name)
      if (hash === tool.hash) return []
      return [{ change: hash === undefined ? 'new' : 'changed', tool }]
    }),
    ...approved.filter(({ name }) => !now.has(name)).map<ToolChange>((tool) => ({ change: 'gone', tool })),
  ]
}
