// The page on monitoring, held against the program: names and labels of metrics, and names of checks, both ways.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { topics } from '../../src/manual/topics.ts'
import { degradedChecks, failingChecks } from '../../src/monitoring/health.ts'
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

test('every alert that the manual names is among the rules', async () => {
  const rules = await Bun.file(join(import.meta.dirname, '../../scripts/deploy/prometheus-alerts.yml')).text()
  const known = [...rules.matchAll(/alert: (\w+)/g)].map(([, name]) => name)
  const named = [...topics.values()].flatMap((text) => text.match(/`Latchkey[A-Z]\w+`/g) ?? [])
  expect(named.length).toBeGreaterThan(1)
  expect(named.map((name) => name.slice(1, -1)).filter((name) => !known.includes(name))).toEqual([])
})
