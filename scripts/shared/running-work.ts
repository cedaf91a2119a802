// `--status` of commands that take long: what the running server is doing at the moment.
import type { OperationResponse } from '../../src/admin/operations.ts'
import { moment } from './render.ts'
import { table } from './table.ts'

export type RunningWork = OperationResponse<'server.work'>

export const statusOption = [
  '--status',
  'show what the running server archives, backs up or reports now, and how far it is',
] as const

export function drawWork({ data }: RunningWork): string {
  return table(
    data,
    [
      ['RUNNING', ({ name }) => name],
      ['SINCE (UTC)', ({ started_at }) => moment(started_at)],
      ['DONE', ({ done, total }) => (total === 0 ? '-' : `${Math.floor((100 * done) / total)} %`)],
    ],
    'Nothing that takes long runs now',
  )
}
