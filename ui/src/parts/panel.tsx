// A panel that fails, or whose code cannot be loaded, leaves the rest of the page alive.
import { Component, type ReactNode, Suspense } from 'react'
import { beforeRetry } from './load-code.ts'
import { Failure, Loading } from './states.tsx'

interface Props {
  name: string
  children: ReactNode
}

export class Panel extends Component<Props, { error: unknown }> {
  override state: { error: unknown } = { error: null }

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error }
  }

  retry = async (): Promise<void> => {
    if ((await beforeRetry(this.state.error)) === 'may try') this.setState({ error: null })
  }

  override render(): ReactNode {
    if (this.state.error !== null) {
      return <Failure what={`${this.props.name} cannot be shown.`} error={this.state.error} onRetry={this.retry} />
    }
    return <Suspense fallback={<Loading />}>{this.props.children}</Suspense>
  }
}
