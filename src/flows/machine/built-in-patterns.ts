import type { Leaf, LeafInput } from '../../kernel/flow.ts'
import { createPatterns } from './pattern.ts'
import { type Adaptive, type AdaptiveInput, adaptive } from './patterns/adaptive.ts'
import { type ForkJoin, type ForkJoinInput, forkJoin } from './patterns/fork-join.ts'
import { type Hierarchical, type HierarchicalInput, hierarchical } from './patterns/hierarchical.ts'
import { type Loop, type LoopInput, loop } from './patterns/loop.ts'
import { type MapReduce, type MapReduceInput, mapReduce } from './patterns/map-reduce.ts'
import { type Parallel, type ParallelInput, parallel } from './patterns/parallel.ts'
import { type Pipeline, type PipelineInput, pipeline } from './patterns/pipeline.ts'
import { type Sequential, type SequentialInput, sequential } from './patterns/sequential.ts'

export const builtInPatterns = createPatterns([
  sequential,
  parallel,
  loop,
  mapReduce,
  pipeline,
  forkJoin,
  hierarchical,
  adaptive,
])

/** A tree of built-in patterns, typed as strictly as possible for its author. */
export type BuiltInNode =
  | Leaf
  | Sequential<BuiltInNode>
  | Parallel<BuiltInNode>
  | Loop<BuiltInNode>
  | MapReduce
  | Pipeline
  | ForkJoin
  | Hierarchical
  | Adaptive
export type BuiltInType = Exclude<BuiltInNode, Leaf>['type']

/** The same as its author writes it: fields with a default may be left out. */
export type BuiltInNodeInput =
  | LeafInput
  | SequentialInput<BuiltInNodeInput>
  | ParallelInput<BuiltInNodeInput>
  | LoopInput<BuiltInNodeInput>
  | MapReduceInput
  | PipelineInput
  | ForkJoinInput
  | HierarchicalInput
  | AdaptiveInput
