/** The bounds of the run that started the flow run, which hold for the runs of the leaves. */
export interface LeafBounds {
  depth: number
  chain_depth: number
  rights: Readonly<Record<string, unknown>>
  /** The agents whose allocations the leaves' calls count for, too. */
  payers: readonly string[]
  eval_id?: string
  /** The uppermost flow run above this one, which counts the runs of all leaves below it. */
  tree?: string
  /** Set if a person asked for the run that started the flow run, and so for what the flow run continues. */
  resumed_by?: 'person'
}
