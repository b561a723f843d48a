import { useState } from 'react'
import { errorText } from '../../../../src/kernel/error-text.ts'
import type { ProviderTest } from '../../../../src/kernel/provider.ts'
import { ApiError, post } from '../../api/client.ts'
import { duration } from '../../parts/figures.ts'

export interface Trial {
  state: 'running' | 'works' | 'fails'
  text: string
}

/** Tests of providers, each by one small call, and their outcomes by name. */
export function useTrials() {
  const [trials, setTrials] = useState<ReadonlyMap<string, Trial>>(new Map())
  const note = (name: string, trial: Trial): void => setTrials((before) => new Map(before).set(name, trial))
  const test = async (name: string): Promise<void> => {
    note(name, { state: 'running', text: '' })
    note(name, await tryProvider(name))
  }
  return { trials, test }
}

async function tryProvider(name: string): Promise<Trial> {
  try {
    const path = `/api/providers/${encodeURIComponent(name)}/test`
    const { ok, model, took_ms, error } = await post<ProviderTest>(path, {}, { patienceMs: 60_000 })
    if (!ok) return { state: 'fails', text: error ?? 'It does not work.' }
    return { state: 'works', text: `It works: ${model ?? 'the model'} answered in ${duration(took_ms)}.` }
  } catch (error) {
    const isUnknown = error instanceof ApiError && error.status === 404
    if (isUnknown) return { state: 'fails', text: 'This Muster cannot test providers.' }
    return { state: 'fails', text: errorText(error) }
  }
}
