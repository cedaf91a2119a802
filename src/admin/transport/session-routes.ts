// The routes of sessions of the admin page.
import { dataOf, listOf } from '../operation/responses.ts'
import { endedSessionResponse, sessionResponse } from '../sessions/session-response.ts'
import type { AdminRoute } from './admin-route.ts'

export const sessionRoutes: AdminRoute[] = [
  {
    method: 'GET',
    path: '/admin/sessions',
    operation: 'sessions.list',
    summary: 'List the sessions of the admin page',
    answer: listOf(sessionResponse),
    isList: true,
    isReading: true,
  },
  {
    method: 'DELETE',
    path: '/admin/sessions/{session}',
    operation: 'sessions.end',
    summary: 'End a session of the admin page',
    answer: dataOf(endedSessionResponse),
  },
]
