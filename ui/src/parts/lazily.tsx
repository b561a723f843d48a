// A component whose code is loaded when it is first shown. React's lazy() keeps a failure for good; here the failure
// goes to the panel around the component, whose Retry helps.
import { type ComponentType, useEffect, useState } from 'react'
import { loadCode } from './load-code.ts'
import { Loading } from './states.tsx'

export function lazily<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let Loaded: ComponentType<Props> | null = null
  // biome-ignore lint/correctness/noComponentHookFactories: called once for each component, outside of components
  return function Lazily(props: Props) {
    const [state, setState] = useState<{ error: unknown } | 'loaded' | 'loading'>('loading')
    useEffect(() => {
      if (Loaded !== null) return
      loadCode(load).then(
        (component) => {
          Loaded = component
          setState('loaded')
        },
        (error: unknown) => setState({ error }),
      )
    }, [])
    if (Loaded !== null) return <Loaded {...props} />
    if (typeof state === 'object') throw state.error
    return <Loading />
  }
}
