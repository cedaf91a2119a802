// The CEL library, loaded when the first condition is compiled: it takes 6 ms and 10 MB, and many sites have none.
import { deferLibrary } from '../../values/deferred-library.ts'

export const celLibrary = deferLibrary(
  '@marcbachmann/cel-js',
  () => require('@marcbachmann/cel-js') as typeof import('@marcbachmann/cel-js'),
)
