// The page on monitoring, held against the program: names and labels of metrics, and names of checks, both ways.
import { expect, test } from 'bun:test'
import { degradedChecks, failingChecks } from '../../src/observe/health.ts'
import { type Family, families } from '../../src/observe/metric-families.ts'
import { namesIn, rowsOf, sectionOf } from '../support/manual.ts'

test('the manual lists every metric with its labels, and no other', () => {
  const listed = rowsOf(sectionOf('monitoring', 'Metrics')).map(([name, labels]) => [
    namesIn(name).join(),
    namesIn(labels),
  ])
  const known = Object.values<Family>(families).map(({ name, labels }) => [name, [...labels]])
  expect(listed).toEqual(known)
})

test('the manual lists every check, and no other', () => {
  const listed = rowsOf(sectionOf('monitoring', 'Check the health of a server')).flatMap(([name]) => namesIn(name))
  const checks = listed.filter((name) => !name.startsWith('GET '))
  expect(checks.toSorted()).toEqual([...failingChecks, ...degradedChecks].toSorted())
})
