// Every limit of the service, with its unit in its name. The documented limits come first (reference: Limits). The
// others follow, each with its reason.

/** Exclusive: a body must be shorter than 32 KB (reference: Token exchange). */
export const exchangeBodyBytesLimit = 32 * 1024
/** Size of a subject token (reference: Token exchange). */
export const subjectTokenBytesMax = 16 * 1024
/** Upper limit; a subject token that expires earlier shortens the lifetime (reference: Access token). */
export const accessTokenLifetimeSecondsMax = 15 * 60
/** How far the clock can be set back before earlier access tokens, which would live too long, are rejected. */
export const accessTokenClockStepSecondsMax = 60
/** Shorter lifetimes would only multiply exchanges (reference: Policy). */
export const accessTokenLifetimeSecondsMin = 60
/** Unicode code points (reference: Limits). */
export const claimCharactersMax = 512
/** Entries of the `scopes` claim (reference: Limits). */
export const scopesEntriesMax = 16

/** The year 9999 in seconds. A later NumericDate is an error, usually milliseconds. */
export const numericDateMax = 253_402_300_799
/** How far `nbf` and `iat` may lie in the future if the issuer has no setting (reference: Subject token). */
export const clockSkewSecondsDefault = 30
export const clockSkewSecondsMax = 600
/** Limits of `exp − iat`. Less than a minute would reject honest issuers; more than a year limits nothing. */
export const maxTokenAgeSecondsMin = 60
export const maxTokenAgeSecondsMax = 366 * 24 * 60 * 60

/** Limits of the time since a person signed in at the issuer. Within a minute, hardly anybody gets back to the page. */
export const pageMaxAgeSecondsMin = 60
export const pageMaxAgeSecondsMax = 30 * 24 * 60 * 60

/** How long keys stay fresh if Cache-Control does not say otherwise (reference: Issuer keys). */
export const issuerKeysFreshSecondsDefault = 10 * 60
export const issuerKeysFreshSecondsMin = 60
export const issuerKeysFreshSecondsMax = 24 * 60 * 60
/** How long a key set stays usable after it becomes stale and cannot be refreshed (reference: Issuer keys). */
export const issuerKeysStaleSecondsDefault = 24 * 60 * 60
export const issuerKeysStaleSecondsMax = 30 * 24 * 60 * 60
/** A certificate bundle; one certificate takes about 2 KB. */
export const issuerCaCharactersMax = 64 * 1024
/** Time between fetches for unknown `kid`s, and the longest wait after a failed fetch (reference: Issuer keys). */
export const issuerKeysCooldownSeconds = 30
export const issuerFetchMillisecondsMax = 5_000
/** How long an exchange waits for newer issuer keys if it already has a matching key that is still usable. */
export const issuerPatienceMilliseconds = 1_000
export const issuerDocumentBytesMax = 256 * 1024
/** A key set that has moved is one redirect away. */
export const issuerRedirectsMax = 3
/** A document hardly holds more real keys, and invalid entries also take time to check. */
export const keySetEntriesMax = 2_000

/** Unicode code points (reference: Limits). */
export const conditionCharactersMax = 2_000
/** The parts of a token that a condition can read (reference: Condition). */
export const conditionStringCharactersMax = 4_096
export const conditionCollectionItemsMax = 256
export const conditionClaimsDepthMax = 16
/** Estimated worst case. Three searches through a full list of claims stay below it. */
export const conditionNanosecondsMax = 12_000_000

/** How often the server checks whether its signing key is due for rotation. */
export const signingKeyCheckMilliseconds = 60 * 60 * 1_000

/** How often the server checks whether old rows are due for an archive, and whether it is quiet. */
export const archiveCheckMilliseconds = 60 * 1_000

/** How often the server checks whether its TLS files have changed. Renewals need no shorter interval. */
export const tlsCheckMillisecondsDefault = 60 * 1_000

/** How much of a condition and its values is shown, and the estimated time to evaluate the parts again. */
export const explainedNanosecondsMax = 2 * conditionNanosecondsMax
export const explainedPartsMax = 100
export const explainedCharactersMax = 200
/** Policies that `policies check` lists as nearest. */
export const nearestPoliciesMax = 5

/** How long OAuth discovery clients cache the key set. A retired signing key stays published for longer. */
export const accessTokenKeysCacheSeconds = 300

/** Covers the commit between the creation of a signing key and its publication. */
export const publicationMarginSeconds = 10

/** Names appear in tables, logs and command lines, so longer ones are unreadable. */
export const nameCharactersMax = 128
/** A reference is a name, an id or a hash; a policy can also be named in a path. */
export const referenceCharactersMax = 512
/** Common proxies reject longer URLs. */
export const urlCharactersMax = 2_048

/** How often an exchange restarts because an admin changed its policy, issuer or key while it waited. */
export const exchangeAttemptsMax = 3
/** A request body must arrive within this time, so that slow senders do not hold memory. */
export const requestBodyMillisecondsMax = 30_000
/** Money is counted in whole nanodollars, so that sums are exact. */
export const nanodollarsPerDollar = 1_000_000_000
/** Far above any real budget, and still a safe integer in nanodollars. */
export const keyLimitDollarsMax = 1_000_000
export const ratePerMinuteMax = 1_000_000_000
/** Days, weeks and months of spending kept per key, so that a wrong clock does not displace the current one. */
export const spentPeriodsMax = 8
/** Model patterns per key or upstream. */
export const modelPatternsMax = 64
/** An access token carries the models and presets that its policy allows, and servers reject headers over 16 KB. */
export const policyBoundsBytesMax = 4_096
/** The largest integer that JSON readers agree on. */
export const offsetMax = Number.MAX_SAFE_INTEGER
/** Keys per page. */
export const keyListRowsMax = 100
/** Model names are shorter than this; the ledger stores them whole. */
export const modelCharactersMax = 256
/** Fallback models per request: each can cost a call of an upstream, and no rate limit counts these. */
export const fallbackModelsMax = 256
/** Model names in one body, anywhere, that are checked against the models allowed for a key or token. */
export const modelNamesMax = 256
/** The largest body limit that an operator can set. The default of 32 MB holds long contexts with inline images. */
export const bodyMegabytesMax = 1_024
/**
 * Complexity of JSON in a body: 32 MB of brackets or members would block the service for many seconds. Real bodies are
 * far less nested, and embedding inputs hold about 100,000 numbers. An object with many members takes a thousand times
 * longer than an equally long list of numbers.
 */
export const jsonLevelsMax = 256
export const jsonValuesMax = 1_000_000
export const jsonMembersMax = 200_000
/** Top-level members of a body. They are checked one by one, several times; no API defines more than fifty. */
export const jsonOutermostMembersMax = 256
/** Body limit of the echo upstream of `dev`. */
export const echoBodyBytesMax = 32 * 1024 * 1024
/**
 * The longest JSON response, or event of a stream, that is kept and parsed to find its usage. In a longer one the usage
 * is searched as the bytes pass. An event of responses repeats the whole request.
 */
export const upstreamTextBytesParsedMax = 1024 * 1024
/**
 * Shorter JSON responses of known length are read in one go: clients cannot use a part of one, and streaming costs
 * three times as much.
 */
export const upstreamResponseBytesWholeMax = 256 * 1024
/** One upstream that hangs must not delay the model lists of the others. */
export const upstreamListMillisecondsMax = 5_000
/** How long an upstream's model list is cached. Models change by the hour; clients ask at every start. */
export const modelListMilliseconds = 5_000
/** The model list of a large installation. */
export const upstreamListBytesMax = 4 * 1024 * 1024
/** A higher reported cost is in another unit. */
export const responseDollarsMax = 1_000
/** A higher token count is an error, and sums of such counts would exceed the safe integers. */
export const countMax = 1_000_000_000
/** A long response that is not streamed sends its first byte only when it is complete. */
export const upstreamFirstByteSecondsDefault = 600
/** A reasoning model sends nothing for minutes. After a longer silence the upstream counts as hung. */
export const upstreamIdleSecondsDefault = 300
/** A client that reads nothing for this long counts as gone, because it keeps an inference server busy. */
export const clientIdleMillisecondsMax = 600_000
/** Header names that an upstream forwards or returns. Real names are shorter. */
export const upstreamHeadersMax = 32
export const headerNameCharactersMax = 64
/**
 * How long a stream is read for its usage after its client left at the last content (reference: Inference). Upstreams
 * send both at once.
 */
export const usageWaitMillisecondsMax = 2_000
/** How long `upstreams check` waits for an upstream. */
export const upstreamCheckMillisecondsMax = 10_000
/** A lower number is tried first. */
export const upstreamPriorityMax = 100
/** Dollars per million tokens, and prices per file. */
export const priceDollarsMax = 1_000_000
export const pricesAtOnceMax = 5_000
export const upstreamSecondsMax = 24 * 60 * 60

/** How long a command waits for the server's response. The slowest operation fetches two documents from an issuer. */
export const operationMillisecondsMax = 60_000
/** Input of an admin operation. A pasted key set is the largest. */
export const operationBodyBytesMax = 512 * 1024
/** Input of a command on the local socket, which only the owner can use. A preset file is the largest. */
export const socketBodyBytesMax = 32 * 1024 * 1024
/** Entries of one list or object in an input; a price file has the most. */
export const inputEntriesMax = pricesAtOnceMax
/** A key set has three levels. */
export const inputDepthMax = 16
/** Path of a local socket: Linux allows 107 bytes, macOS 103. */
export const socketPathBytesMax = 103
/** Rows per report page. */
export const reportRowsMax = 10_000
export const reportRowsDefault = 50
/** Used subject tokens, about 250 bytes each. A full table refuses new tokens instead of dropping old ones. */
export const usedSubjectTokensMax = 500_000
/** Access tokens in the verification cache, about 600 bytes each. */
export const verifiedTokensMax = 10_000
/** Client networks in the rate limiter, about 2 MB. */
export const rateBucketsMax = 20_000
/** How long a connection can be idle, unless its request lifts this limit. */
export const connectionIdleSecondsMax = 60
/** How long a running exchange or response can take after a stop signal, unless the settings say otherwise. */
export const drainMillisecondsDefault = 10_000
/** Values per metrics label; further values count as `other`. Prometheus stores about 3 KB per series. */
export const labelValuesMax = 200
/** Log lines that wait for a slow reader, about 15,000. Further lines are dropped and counted. */
export const logQueueBytesMax = 4 * 1024 * 1024
/** How long a process that ends waits for the reader of its log. */
export const logFlushMillisecondsMax = 2_000
/** How long a health check trusts the last commit. Each check after that writes a page: at most 17,280 a day. */
export const writeCheckMilliseconds = 5_000
/** How long readiness trusts its last look at upstreams and issuers: anyone may ask, and there can be many of them. */
export const readinessMilliseconds = 1_000
/** How long a command or a starting server waits for another process to release the database. */
export const databaseWaitMillisecondsMax = 15_000

/** Size of the write-ahead log at which a backup stops. Its usual size is 16 MiB. */
export const backupLogBytesMax = 256 * 1024 * 1024
/** What a backup or a restore leaves free on a disk. */
export const diskReserveBytes = 16 * 1024 * 1024
export const backupsKeptMax = 10_000
/** How often the server checks whether a backup is due. */
export const backupCheckMilliseconds = 60 * 1_000
/** The longest wait after a scheduled backup that failed. */
export const backupRetryMilliseconds = 10 * 60 * 1_000

/** Limits of a preset body (reference: Limits). Characters are Unicode code points. */
export const metadataPairsMax = 16
export const metadataKeyCharactersMax = 64
export const metadataValueCharactersMax = 512
export const stopSequencesMax = 4
export const sessionIdCharactersMax = 256
export const topLogprobsMax = 20
/** Characters of a slug (reference: Presets). */
export const presetSlugCharactersMax = 128
/** A tool's JSON schema is the deepest part of a real body. Storing a body must not overflow the stack. */
export const presetBodyDepthMax = 128
/** Problems listed when a preset body is rejected. */
export const presetProblemsMax = 10
/** A body with its messages, and the stored part, which holds several hundred tools. A page lists up to 100. */
export const presetBodyBytesMax = 4 * 1024 * 1024
export const presetConfigCharactersMax = 256 * 1024
/** Presets per workspace. The server keeps all presets in memory, about 500 bytes each, and lists them in one go. */
export const presetsMax = 10_000
/** Size of the version cache in memory. The least recently used versions are evicted and read again on demand. */
export const presetCacheCharactersMax = 32 * 1024 * 1024
/** Memory per value of a cached version, in addition to its text. */
export const presetValueCharacters = 100
/** Presets or versions per page. */
export const presetPageRowsDefault = 50
export const presetPageRowsMax = 100
export const presetDescriptionCharactersMax = 2_000
/** Higher numbers are not valid version numbers. */
export const presetVersionMax = 1_000_000_000

/** What is younger had no time to be used: no list and no finding names it as never used. */
export const neverUsedAgeMilliseconds = 24 * 60 * 60 * 1_000
