// Which nodes of an rqlite cluster belong to it, and which members are not among the addresses.
import { expect, test } from 'bun:test'
import {
  type AddressStatus,
  type NodeStatus,
  outsidersOf,
  weaknessesOfMembers,
} from '../../../../db/remote/rqlite/members.ts'

const membersOf = (ids: string, nonVoters = '') =>
  [...ids, ...nonVoters].map((id) => ({ id, address: `10.0.0.${id}:4002`, isVoter: ids.includes(id) }))

const of = (id: string, change: Partial<NodeStatus> = {}, host = `10.0.0.${id}:4001`): AddressStatus => ({
  host,
  status: {
    ...{ id, isLeader: id === '1', leaderId: '1', members: membersOf('123') },
    ...{ term: 2, committed: 9, applied: 9, bytes: 1 },
    ...change,
  },
})
const silent = (host: string): AddressStatus => ({ host, status: undefined })
const inCluster = (members: NodeStatus['members']) => (id: string) => of(id, { members })

const lost = { isLeader: false, leaderId: '' }
const ofOwn = (id: string, term: number) => of(id, { isLeader: true, leaderId: id, members: membersOf(id), term })
const pair = 'it has two members: while one of them is down, it cannot commit'
const besideIt = (host: string) => `its node ${host} runs beside the cluster, of which it is no member`
const ownOf = (host: string) => `its node ${host} leads a separate cluster`
const missing = (id: string) =>
  `its member ${id} (10.0.0.${id}:4002) is at none of the addresses in LATCHKEY_DATABASE_URL that respond`
const without3 = inCluster(membersOf('12'))
const replaced = inCluster(membersOf('124'))

const rows: [what: string, asked: AddressStatus[], weaknesses: string[]][] = [
  ['three members', ['1', '2', '3'].map((id) => of(id)), []],
  ['one member', [of('1', { members: membersOf('1') })], []],
  ['a member that is down', [of('1'), of('2'), silent('10.0.0.3:4001')], []],
  ['a member that is down and has a name in the URL', [of('1'), of('2'), silent('c.example:4001')], [missing('3')]],
  ['members whose addresses are names', [of('1', {}, 'a:4001'), of('2', {}, 'b:4001'), of('3', {}, 'c:4001')], []],
  ['a follower beside its leader, which is down', [silent('10.0.0.1:4001'), of('2'), of('3')], []],
  ['a follower that has not applied the change of its members', [replaced('1'), of('2'), replaced('4')], []],
  ['nodes that know no leader', ['1', '2', '3'].map((id) => of(id, { ...lost, members: membersOf('12') })), []],
  [
    'a removed node that knows of its removal',
    [without3('1'), without3('2'), of('3', { ...lost, members: membersOf('12') })],
    [besideIt('10.0.0.3:4001'), pair],
  ],
  [
    'a removed node that does not know it',
    [without3('1'), without3('2'), of('3', lost)],
    [besideIt('10.0.0.3:4001'), pair],
  ],
  [
    'a removed node beside its successor',
    [replaced('1'), replaced('2'), of('3', lost)],
    [besideIt('10.0.0.3:4001'), missing('4')],
  ],
  ['a removed node that leads alone', [without3('1'), without3('2'), ofOwn('3', 9)], [ownOf('10.0.0.3:4001'), pair]],
  ['a member that leads alone on an empty folder', [ofOwn('3', 9), of('1'), of('2')], [ownOf('10.0.0.3:4001')]],
  [
    'a leader that was cut off for a moment',
    [of('1', { term: 3 }), of('2', { isLeader: true, leaderId: '2' }), of('3')],
    [],
  ],
  ['a member that is not in the URL', [of('1'), of('2')], [missing('3')]],
  [
    'a dead machine in the URL in place of its successor',
    [replaced('1'), replaced('2'), silent('10.0.0.3:4001')],
    [missing('4')],
  ],
  ['two members', [without3('1'), without3('2')], [pair]],
  ['a reader that does not vote and is not in the URL', ['1', '2', '3'].map(inCluster(membersOf('123', '4'))), []],
  ['a reader that does not vote in the URL', ['1', '2', '3', '4'].map(inCluster(membersOf('123', '4'))), []],
]
for (const [what, asked, weaknesses] of rows)
  test(`${what}: ${weaknesses.length === 0 ? 'nothing' : weaknesses.length} to report`, () => {
    expect(weaknessesOfMembers(asked).map((each) => each.what)).toEqual(weaknesses)
    const outside = weaknesses.filter((each) => each.startsWith('its node'))
    expect(outsidersOf(asked)).toHaveLength(outside.length)
  })
