// Loaded before every test, because the test runner has no `exit` event.
import { afterAll } from 'bun:test'
import { runEndings } from './at-end.ts'

afterAll(runEndings)
