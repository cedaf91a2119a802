// The bodies of the holds bench, by kind of endpoint: as much of each shape as the limits of its endpoint allow, and more.

export type HoldBody = {
  name: string
  path: string
  as: 'key' | 'bounded' | 'management' | 'none'
  method?: string
  type?: string
  text: () => string
}

const repeated = (count: number, item: string | ((index: number) => string)) =>
  Array.from({ length: count }, (_, index) => (typeof item === 'string' ? item : item(index))).join()
const list = (count: number, item: string | ((index: number) => string)) => `[${repeated(count, item)}]`
const record = (count: number, value: string) => `{${repeated(count, (index) => `"k${index}":${value}`)}}`
const nested = (levels: number, open: string, close: string) => `${open.repeat(levels)}1${close.repeat(levels)}`
const megabytes = (count: number) => count * 1024 * 1024
const message = '{"role":"user","content":"hi"}'

type Shape = [name: string, fields: (bytes: number) => string]
/** Members for the outermost object, as large as the limit of the endpoint. */
const anywhere: Shape[] = [
  ['many members', () => repeated(198_000, (index) => `"k${index}":1`)],
  ['many null members', () => repeated(198_000, (index) => `"k${index}":null`)],
  ['500 members', () => repeated(500, (index) => `"k${index}":1`)],
  ['one member with long name', (bytes) => `"${'n'.repeat(bytes)}":1`],
  ['250 members with long names', (bytes) => repeated(250, (index) => `"${index}${'N'.repeat(bytes / 260)}":1`)],
  ['object of 198,000 members', () => `"logit_bias":${record(198_000, '1')}`],
  ['198,000 objects', () => `"x":${list(198_000, (index) => `{"k${index}":1}`)}`],
  ['80,000 objects with names that take long', () => `"x":${list(80_000, `{"${'\uFDFA'.repeat(125)}":{}}`)}`],
  ['5,000 names that take long', () => `"x":${list(5_000, `{"${'\uFDFA'.repeat(125)}":{}}`)}`],
  ['5,000 shorter such names', () => `"x":${list(5_000, (index) => `{"${'\uFDFA'.repeat(59)}${index}":{}}`)}`],
  ['198,000 objects with an accent', () => `"x":${list(198_000, '{"aé":{}}')}`],
  ['198,000 equal objects', () => `"x":${list(198_000, '{"a":1}')}`],
  ['990,000 numbers', () => `"input":${list(990_000, '1')}`],
  ['990,000 empty lists', () => `"x":${list(490_000, '[]')}`],
  ['200 levels', () => `"x":${list(2_000, nested(200, '[', ']'))}`],
  ['long ASCII text', (bytes) => `"x":"${'a'.repeat(bytes)}"`],
  ['long text beyond ASCII', (bytes) => `"x":"${'é'.repeat(bytes / 2)}"`],
  ['long text beyond Latin', (bytes) => `"x":"${'界'.repeat(bytes / 3)}"`],
  ['long text of escaped quotes', (bytes) => `"x":"${'\\"'.repeat(bytes / 2)}"`],
  ['long text of backslashes', (bytes) => `"x":"${'\\\\'.repeat(bytes / 2)}"`],
  ['long text of escapes', (bytes) => `"x":"${'\\u754c'.repeat(bytes / 6)}"`],
  ['texts', (bytes) => `"x":${list(990_000, `"${'a'.repeat(Math.max(1, bytes / 1_000_000 - 4))}"`)}`],
  ['white space', (bytes) => `"x":${' '.repeat(bytes)}1`],
  ['a long number', (bytes) => `"x":${'1'.repeat(bytes)}`],
  ['brackets without end', (bytes) => `"x":${'['.repeat(bytes)}`],
  ['quotes without end', (bytes) => `"x":"${'\\"'.repeat(bytes / 2 - 2)}`],
]
const chat: Shape[] = [
  ['messages', () => `"messages":${list(66_000, message)}`],
  ['messages with parts', () => `"messages":[{"role":"user","content":${list(66_000, '{"type":"text","text":"x"}')}}]`],
  ['empty messages', () => `"messages":${list(490_000, '{}')}`],
  ['long messages', (bytes) => `"messages":${list(1_000, `{"role":"user","content":"${'a'.repeat(bytes / 1_010)}"}`)}`],
  [
    'long messages beyond Latin',
    (bytes) => `"messages":${list(1_000, `{"role":"user","content":"${'界'.repeat(bytes / 3_030)}"}`)}`,
  ],
  [
    'tools',
    () =>
      `"messages":[${message}],"tools":${list(49_000, (index) => `{"type":"function","function":{"name":"f${index}"}}`)}`,
  ],
  [
    'tools of one name',
    () => `"messages":[${message}],"tools":${list(49_000, '{"type":"function","function":{"name":"f1"}}')}`,
  ],
  ['empty tools', () => `"messages":[${message}],"tools":${list(490_000, '{}')}`],
  [
    'a choice among many tools',
    () =>
      `"messages":[${message}],"tools":${list(10, '{"type":"function","function":{"name":"f1"}}')},"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":${list(190_000, '{"type":"x"}')}}}`,
  ],
  [
    'stream',
    (bytes) => `"stream":true,"messages":${list(1_000, `{"role":"user","content":"${'a'.repeat(bytes / 1_010)}"}`)}`,
  ],
  [
    'stream with options',
    (bytes) =>
      `"stream":true,"stream_options":{},"messages":${list(1_000, `{"role":"user","content":"${'a'.repeat(bytes / 1_010)}"}`)}`,
  ],
  [
    'stream with options and members',
    () => `"stream":true,"stream_options":{},"x":${list(66_000, '{"a":1,"b":2,"c":3}')}`,
  ],
  ['stream with options and white space', (bytes) => `"stream":true,"stream_options":{},"x":${' '.repeat(bytes)}1`],
  [
    'stream with options and escaped quotes',
    (bytes) => `"stream":true,"stream_options":{},"x":"${'\\"'.repeat(bytes / 2)}"`,
  ],
  ['stream with options beyond Latin', (bytes) => `"stream":true,"stream_options":{},"x":"${'界'.repeat(bytes / 3)}"`],
  ['stream with options of many members', () => `"stream":true,"stream_options":${record(198_000, '1')}`],
  [
    'reasoning of many members',
    () => `"messages":[${message}],"reasoning_effort":"low","reasoning":${record(198_000, '1')}`,
  ],
  ['a message of many members', () => `"messages":[${record(198_000, '1')}]`],
  ['a tool of many members', () => `"messages":[${message}],"tools":[${record(198_000, '1')}]`],
  ['many models', () => `"models":${list(490_000, '"m"')}`],
  ['many names of models', () => `"plugins":[{"id":"x","allowed_models":${list(490_000, '"m-1"')}}]`],
  ['many members that say model', () => `"x":${list(190_000, (index) => `{"Mo_del${index}":"m"}`)}`],
  [
    'many members with long names to fold',
    (bytes) => `"x":{${repeated(1_000, (index) => `"${index}${'_É'.repeat(bytes / 3_100)}":"m"`)}}`,
  ],
]
const inference: HoldBody[] = ['key', 'bounded'].flatMap((as) =>
  ['"model":"m"', '"model":"@preset/p"'].flatMap((model) =>
    [...anywhere, ...chat].map(
      ([name, fields]): HoldBody => ({
        name: `${name} as ${as}${model.includes('preset') ? ' with a preset' : ''}`,
        path: '/chat/completions',
        as: as as 'key',
        text: () => `{${model},${fields(megabytes(31))}}`,
      }),
    ),
  ),
)

const saved: HoldBody[] = ['chat/completions', 'messages', 'responses'].flatMap((dialect) =>
  [
    ...anywhere,
    ...chat,
    ['items', () => `"input":${list(190_000, '{}')},"messages":${list(190_000, '1')}`] as Shape,
    ['wrong tools', () => `"tools":${list(490_000, '1')}`] as Shape,
    ['system parts', () => `"system":${list(66_000, '{"type":"text","text":"x"}')}`] as Shape,
    ['stop', () => `"stop":${list(490_000, '1')}`] as Shape,
    ['metadata', () => `"metadata":${record(190_000, '"x"')}`] as Shape,
    [
      'metadata with long keys',
      () => `"metadata":{${repeated(16, (index) => `"${index}${'界'.repeat(80_000)}":"x"`)}}`,
    ] as Shape,
  ].map(
    ([name, fields]): HoldBody => ({
      name: name as string,
      path: `/presets/x/${dialect}`,
      as: 'management',
      text: () =>
        `{${dialect === 'chat/completions' && !(fields as Shape[1])(10).includes('"messages"') ? `"messages":[${message}],` : ''}${(fields as Shape[1])(megabytes(3.9))}}`,
    }),
  ),
)

const admin480 = 480 * 1024
const adminShapes: Shape[] = [
  ['members', () => repeated(44_000, (index) => `"k${index}":1`)],
  ['members of a few', () => repeated(250, (index) => `"k${index}":1`)],
  ['members with long names', () => repeated(250, (index) => `"${index}${'n'.repeat(1_700)}":1`)],
  ['one long name', (bytes) => `"${'n'.repeat(bytes)}":1`],
  ['a long text', (bytes) => `"name":"${'n'.repeat(bytes)}"`],
  ['a long text beyond the plane', (bytes) => `"name":"${'😀'.repeat(bytes / 4)}"`],
  ['a long name of blanks', (bytes) => `"name":"${' '.repeat(bytes)}"`],
  ['models that are numbers', (bytes) => `"name":"x","allowed_models":${list(bytes / 2, '1')}`],
  ['models that are empty', (bytes) => `"name":"x","allowed_models":${list(bytes / 3, '""')}`],
  ['models that are lists', (bytes) => `"name":"x","allowed_models":${list(bytes / 3, '[]')}`],
  ['presets that are numbers', (bytes) => `"name":"x","allowed_presets":${list(bytes / 2, '1')}`],
  ['presets that are wrong', (bytes) => `"name":"x","allowed_presets":${list(bytes / 4, '"/"')}`],
  [
    'both lists wrong',
    (bytes) => `"name":"x","allowed_presets":${list(bytes / 8, '"/"')},"allowed_models":${list(bytes / 6, '""')}`,
  ],
  ['a name that is a list', (bytes) => `"name":${list(bytes / 2, '1')}`],
  ['a name that is an object', () => `"name":${record(40_000, '1')}`],
  ['a rate that is a list', (bytes) => `"name":"x","requests_per_minute":${list(bytes / 2, '1')}`],
  ['a date that is a long text', (bytes) => `"name":"x","expires_at":"${'2'.repeat(bytes)}"`],
  ['deep', (bytes) => `"name":${nested(bytes / 2 - 10, '[', ']')}`],
]
const jwk =
  '"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"'
const issuerShapes: Shape[] = [
  ...adminShapes,
  ['jwks that is a list', (bytes) => `"jwks":${list(bytes / 2, '1')}`],
  ['jwks with many keys', () => `"jwks":{"keys":${list(2_000, `{${jwk}}`).replace(/f83OJ3[^"]*/g, 'AA')}}`],
  ['jwks with wrong keys', () => `"jwks":{"keys":${list(2_000, '{"kty":1,"kid":1,"use":1,"alg":1}')}}`],
  ['jwks with wrong key_ops', () => `"jwks":{"keys":[{${jwk},"key_ops":${list(125_000, '1')}}]}`],
  ['jwks with many key_ops', () => `"jwks":{"keys":[{${jwk},"key_ops":${list(80_000, '""')}}]}`],
  ['jwks with members', () => `"jwks":{"keys":[{${jwk},${repeated(22_000, (index) => `"k${index}":1`)}}]}`],
  ['jwks with long modulus', () => `"jwks":{"keys":[{"kty":"RSA","e":"AQAB","n":"${'A'.repeat(250_000)}"}]}`],
  ['long issuer URL', (bytes) => `"name":"x","issuer_url":"https://${'a'.repeat(bytes)}"`],
  ['issuer URL with dots', (bytes) => `"name":"x","issuer_url":"https://a/${'../'.repeat(bytes / 3)}"`],
  ['issuer URL with a long host', (bytes) => `"name":"x","issuer_url":"https://${'é.'.repeat(bytes / 3)}com"`],
  ['issuer URL with a long label', (bytes) => `"name":"x","issuer_url":"https://${'é'.repeat(bytes / 2)}"`],
  ['issuer URL with ports', (bytes) => `"name":"x","issuer_url":"https://a:${'1'.repeat(bytes)}"`],
  [
    'JWKS URL with a long host',
    (bytes) => `"name":"x","issuer_url":"https://a","jwks_url":"https://${'é.'.repeat(bytes / 3)}com"`,
  ],
  [
    'CA of begins',
    (bytes) => `"name":"x","issuer_url":"https://a","ca_pem":"${'-----BEGIN CERTIFICATE-----'.repeat(bytes / 27)}"`,
  ],
  [
    'CA of begins within its bound',
    () => `"name":"x","issuer_url":"https://a","ca_pem":"${'-----BEGIN CERTIFICATE-----a'.repeat(2_300)}"`,
  ],
]
const policyShapes: Shape[] = [
  ...adminShapes,
  [
    'a long condition',
    (bytes) => `"name":"x","issuer":"i","key":"k","audience":"a","condition":"${'('.repeat(bytes)}"`,
  ],
  ['long values', (bytes) => `"name":"x","issuer":"i","key":"k","audience":"${'😀'.repeat(bytes / 4)}"`],
  ['a long reference', (bytes) => `"name":"x","issuer":"${'x'.repeat(bytes)}","key":"k","audience":"a"`],
]
const administration: HoldBody[] = (
  [
    ['POST', '/keys', adminShapes],
    ['POST', '/workload-identity/issuers', issuerShapes],
    ['POST', '/workload-identity/issuers/verify', issuerShapes],
    ['POST', '/workload-identity/policies', policyShapes],
    [
      'POST',
      '/workload-identity/policies/check',
      [...adminShapes, ['a long token', (bytes) => `"token":"${'a.'.repeat(bytes / 2)}"`]],
    ],
    [
      'PATCH',
      '/presets/p',
      [...adminShapes, ['a long description', (bytes) => `"description":"${'😀'.repeat(bytes / 4)}"`]],
    ],
  ] as [string, string, Shape[]][]
).flatMap(([method, path, shapes]) =>
  shapes.map(
    ([name, fields]): HoldBody => ({ name, path, method, as: 'management', text: () => `{${fields(admin480)}}` }),
  ),
)

const form = 'application/x-www-form-urlencoded'
const grant =
  'grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt&federation_policy_id=0b8f2b4e-8d5c-4b7e-9b1a-0d6d4c0f2a11'
const encoded = (json: string) => Buffer.from(json).toString('base64url')
const jwtOf = (payload: string) => `${encoded('{"alg":"RS256"}')}.${encoded(payload)}.AAAA`
const exchange: HoldBody[] = (
  [
    ['ampersands', () => `${grant}&${'&'.repeat(32_000)}`],
    ['fields', () => `${grant}&${'a=1&'.repeat(8_000)}`],
    ['encoded fields', () => `${grant}&${'%61=%61&'.repeat(4_000)}`],
    ['one encoded value', () => `${grant}&subject_token=${'%61'.repeat(10_000)}`],
    ['pluses', () => `${grant}&subject_token=${'+'.repeat(32_000)}`],
    ['a token of dots', () => `${grant}&subject_token=${'.'.repeat(16_000)}`],
    ['a token of tokens', () => `${grant}&subject_token=${'eyJhbGciOiJ'.repeat(1_450)}`],
    ['a scope of tokens', () => `${grant}&subject_token=a&scope=${'eyJhbGciOiJ'.repeat(2_800)}`],
    ['a policy of tokens', () => `${grant}&subject_token=a.b.c&federation_policy_id=${'eyJhbGciOiJ'.repeat(2_800)}`],
    ['a payload with members', () => `${grant}&subject_token=${jwtOf(record(1_300, '1'))}`],
    ['a payload with members twice', () => `${grant}&subject_token=${jwtOf(`{${repeated(2_000, '"a":1')}}`)}`],
    ['a payload of lists', () => `${grant}&subject_token=${jwtOf(`{"a":${nested(6_000, '[', ']')}}`)}`],
    ['a payload of escapes', () => `${grant}&subject_token=${jwtOf(`{"iss":"${'\\u0065'.repeat(2_000)}"}`)}`],
  ] as [string, () => string][]
).map(([name, text]) => ({ name, path: '/oauth/token', as: 'none', type: form, text }))

export const bodies: HoldBody[] = [...exchange, ...administration, ...saved, ...inference]
