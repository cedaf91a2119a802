// Every bound of the service, its unit in its name. Numbers of the interface come first (reference: Limits); the rest are ours, each with its reason.

/** The body stays "under 32 KB", so the 32,768th byte is one too many (reference: Token exchange). */
export const exchangeBodyBytesLimit = 32 * 1024
/** Of the JWT that is exchanged (reference: Token exchange). */
export const subjectTokenBytesMax = 16 * 1024
/** At most; a subject token that expires earlier shortens it (reference: Access token). */
export const accessTokenLifetimeSecondsMax = 15 * 60
/** How far the clock may be set back before the access tokens issued until then end: later ones would live longer than allowed. */
export const accessTokenClockStepSecondsMax = 60
/** Shorter tokens would only multiply exchanges (reference: Policy). */
export const accessTokenLifetimeSecondsMin = 60
/** Counted in Unicode code points (reference: Limits). */
export const claimCharactersMax = 512
/** Of the `scopes` claim (reference: Limits). */
export const scopesEntriesMax = 16

/** The year 9999 in seconds; a NumericDate beyond it is a mistake (milliseconds, usually), not a date. */
export const numericDateMax = 253_402_300_799
/** How far `nbf` and `iat` may lie ahead of our clock unless the issuer says otherwise (reference: Subject token). */
export const clockSkewSecondsDefault = 30
export const clockSkewSecondsMax = 600
/** A cap on exp − iat below a minute would refuse honest issuers; beyond a year it caps nothing. */
export const maxTokenAgeSecondsMin = 60
export const maxTokenAgeSecondsMax = 366 * 24 * 60 * 60

/** Keys are fresh for this long unless Cache-Control says otherwise (reference: Issuer keys). */
export const issuerKeysFreshSecondsDefault = 10 * 60
export const issuerKeysFreshSecondsMin = 60
export const issuerKeysFreshSecondsMax = 24 * 60 * 60
/** A set that could not be renewed stays usable this long past its freshness by default (reference: Issuer keys). */
export const issuerKeysStaleSecondsDefault = 24 * 60 * 60
export const issuerKeysStaleSecondsMax = 30 * 24 * 60 * 60
/** A bundle of certificates; one takes some 2 KB. */
export const issuerCaCharactersMax = 64 * 1024
/** At most one extra fetch in this time for unknown `kid`s; the longest wait after a failed one (reference: Issuer keys). */
export const issuerKeysCooldownSeconds = 30
export const issuerFetchMillisecondsMax = 5_000
/** How long an exchange waits for newer keys of an issuer when it has one that fits and may still be used. */
export const issuerPatienceMilliseconds = 1_000
export const issuerDocumentBytesMax = 256 * 1024
/** A moved key set is one hop away. */
export const issuerRedirectsMax = 3
/** As many real keys hardly fit into a document; entries that are none cost time all the same. */
export const keySetEntriesMax = 2_000

/** Counted in Unicode code points (reference: Limits). */
export const conditionCharactersMax = 2_000
/** What a condition sees of a token (reference: Condition). */
export const conditionStringCharactersMax = 4_096
export const conditionCollectionItemsMax = 256
export const conditionClaimsDepthMax = 16
/** The estimate of the worst case; three searches through a full list of claims stay below it. */
export const conditionNanosecondsMax = 12_000_000

/** How often the server looks whether its signing key is due. */
export const signingKeyCheckMilliseconds = 60 * 60 * 1_000

/** How often the server looks whether its TLS files have changed: soon enough for any renewal. */
export const tlsCheckMillisecondsDefault = 60 * 1_000

/** How much of a condition and of a value an explanation shows, and what evaluating its parts again may take in all, estimated. */
export const explainedNanosecondsMax = 2 * conditionNanosecondsMax
export const explainedPartsMax = 100
export const explainedCharactersMax = 200
/** The policies that `policies check` lists as nearest. */
export const nearestPoliciesMax = 5

/** OAuth discovery clients cache the key set this long; a retired signing key outlives it. */
export const accessTokenKeysCacheSeconds = 300

/** Between the time that a new signing key is given and the moment that it is published lies its commit. */
export const publicationMarginSeconds = 10

/** A name shows up in tables, logs and command lines; longer ones help nobody. */
export const nameCharactersMax = 128
/** A reference is a name, an id or a hash; a policy may also be named in a path. */
export const referenceCharactersMax = 512
/** Longer URLs are refused by common proxies as well. */
export const urlCharactersMax = 2_048

/** How often an exchange starts over when an admin changes what it rests on while it waits. */
export const exchangeAttemptsMax = 3
/** A request body must arrive within this time, or a slow sender would hold memory for ever. */
export const requestBodyMillisecondsMax = 30_000
/** Money is counted in whole nanodollars, so that sums are exact. */
export const nanodollarsPerDollar = 1_000_000_000
/** Far beyond any budget, and its billionths are whole numbers still. */
export const keyLimitDollarsMax = 1_000_000
export const ratePerMinuteMax = 1_000_000_000
/** Days, weeks and months of which a key's spending is known: a clock that goes wrong leaves one that is still running behind. */
export const spentPeriodsMax = 8
/** Patterns of models that a key or an upstream names. */
export const modelPatternsMax = 64
/** An access token carries the models and presets that its policy allows, and servers refuse headers of more than 16 KB. */
export const policyBoundsBytesMax = 4_096
/** The last whole number that JSON readers agree on. */
export const offsetMax = Number.MAX_SAFE_INTEGER
/** Keys of one page. */
export const keyListRowsMax = 100
/** Longer names of models are nobody's; the ledger keeps them whole. */
export const modelCharactersMax = 256
/** More fallbacks than that are no plan. */
export const fallbackModelsMax = 16
/** Names of models in one body, wherever they are, that are held against the bound of a key or token. */
export const modelNamesMax = 256
/** The largest body that an operator may allow; the default of 32 MB holds long contexts with inlined images. */
export const bodyMegabytesMax = 1_024
/**
 * What JSON a body may hold: 32 MB of brackets or of members would stop the service for many seconds. Nobody nests so deeply; inputs of
 * embeddings are some 100,000 numbers; an object with many members takes a thousand times as long as a list of as many numbers.
 */
export const jsonLevelsMax = 256
export const jsonValuesMax = 1_000_000
export const jsonMembersMax = 200_000
/** Members of the body itself, of which no interface knows more than fifty. They are looked at one by one, several times. */
export const jsonOutermostMembersMax = 256
/** The bound of the echo upstream of `dev`. */
export const echoBodyBytesMax = 32 * 1024 * 1024
/** A JSON answer is kept up to this size to find its usage; of a larger one the end is, and so much of its beginning. */
export const upstreamAnswerBytesInspectedMax = 8 * 1024 * 1024
export const upstreamAnswerHeadBytesInspectedMax = 4 * 1024
/** A shorter JSON answer of known length is read in one go: nobody can use a part of it, and a stream costs thrice as much. */
export const upstreamAnswerBytesWholeMax = 256 * 1024
/** A list of models is at hand or it is not; the others are not to wait for one that hangs. */
export const upstreamListMillisecondsMax = 5_000
/** What an upstream lists is kept for so long. Models come and go by the hour; clients ask at every start. */
export const modelListMilliseconds = 5_000
/** The list of models of a large installation. */
export const upstreamListBytesMax = 4 * 1024 * 1024
/** An answer that costs more is one whose cost is told in another unit. */
export const answerDollarsMax = 1_000
/** A larger count of tokens is a mistake; sums of it would leave the integers. */
export const countMax = 1_000_000_000
/** The longest event of a stream that is searched for usage: one may bring back all that the request held. */
export const upstreamEventBytesInspectedMax = 8 * 1024 * 1024
/** A long answer that is not streamed sends its first byte when it is complete. */
export const upstreamFirstByteSecondsDefault = 600
/** A model that thinks sends nothing for minutes; what is silent for longer is taken for hung. */
export const upstreamIdleSecondsDefault = 300
/** A client that takes nothing of its answer for so long is taken for gone, since it holds an inference server all the while. */
export const clientIdleMillisecondsMax = 600_000
/** Headers that an upstream is given, or gives, by name. Real names are shorter. */
export const upstreamHeadersMax = 32
export const headerNameCharactersMax = 64
/**
 * How long a stream is read on for its usage when its client left after the last content (reference: Inference).
 * Upstreams send both at once.
 */
export const usageWaitMillisecondsMax = 2_000
/** How long `upstreams check` waits for one. */
export const upstreamCheckMillisecondsMax = 10_000
/** A lower number is tried before a higher one. */
export const upstreamPriorityMax = 100
/** Dollars per million tokens, and prices that one file may hold. */
export const priceDollarsMax = 1_000_000
export const pricesAtOnceMax = 5_000
export const upstreamSecondsMax = 24 * 60 * 60

/** A command waits this long for the server's answer; the slowest operation fetches two documents of an issuer. */
export const operationMillisecondsMax = 60_000
/** An admin operation's input: a pasted key set is the largest. */
export const operationBodyBytesMax = 512 * 1024
/** The same from a command, which is the owner's: a file of presets is the largest. */
export const socketBodyBytesMax = 32 * 1024 * 1024
/** Entries of one list or object of an input: as many as a file of prices may have. */
export const inputEntriesMax = pricesAtOnceMax
/** A key set is three levels deep. */
export const inputDepthMax = 16
/** The path of a local socket: Linux allows 107 bytes, macOS 103. */
export const socketPathBytesMax = 103
/** Rows of one page of a report. */
export const reportRowsMax = 10_000
export const reportRowsDefault = 50
/** Unexpired tokens under replay protection, some 250 bytes each; one more is refused rather than one forgotten. */
export const usedSubjectTokensMax = 500_000
/** Access tokens that were verified and need not be again, some 600 bytes each. */
export const verifiedTokensMax = 10_000
/** Networks whose rate is remembered: some 2 MB. */
export const rateBucketsMax = 20_000
/** For so long nothing may move on a connection, unless its request has lifted the limit. */
export const connectionIdleSecondsMax = 60
/** A running exchange or answer gets this long to end after a stop signal. */
export const drainMillisecondsMax = 10_000
/** Values of one label of the metrics; what has no room counts as `other`. A Prometheus keeps some 3 KB for a series. */
export const labelValuesMax = 200
/** A health check takes the last commit for proof this long, then commits a row: a page of the log, so 17,280 pages a day at most. */
export const writeCheckMilliseconds = 5_000
/** How long a command or a starting server waits for another command, or for a server that is draining, to let go of the database. */
export const databaseWaitMillisecondsMax = 15_000

/** Of a preset body (reference: Limits); characters are Unicode code points. */
export const metadataPairsMax = 16
export const metadataKeyCharactersMax = 64
export const metadataValueCharactersMax = 512
export const stopSequencesMax = 4
export const sessionIdCharactersMax = 256
export const topLogprobsMax = 20
/** Of a slug (reference: Presets). */
export const presetSlugCharactersMax = 128
/** The JSON schema of a tool is the deepest part of a preset body; nobody writes deeper ones, and storing them must not exhaust the stack. */
export const presetBodyDepthMax = 128
/** Problems that one refusal of a preset body lists. */
export const presetProblemsMax = 10
/** A body with its messages, and what of it a version keeps: several hundred tools. A page of versions holds a hundred of these. */
export const presetBodyBytesMax = 4 * 1024 * 1024
export const presetConfigCharactersMax = 256 * 1024
/** Presets of one workspace; the server holds them all in memory, some 500 bytes each, and lists them in one go. */
export const presetsMax = 10_000
/** What versions say is kept in memory up to this size; what was not used for longest is read again when it is. */
export const presetCacheCharactersMax = 32 * 1024 * 1024
/** What each value in a version takes up there beside its text. */
export const presetValueCharacters = 100
/** Presets that one operation imports; a command takes a larger file apart. */
export const presetsAtOnceMax = 500
/** The same in characters of their JSON, the largest single preset being far below it. */
export const presetsAtOnceCharactersMax = 4 * 1024 * 1024
/** A file of presets: as many as a workspace may hold, of a usual size. */
export const presetFileBytesMax = 64 * 1024 * 1024
/** Rows of one page. */
export const presetPageRowsDefault = 50
export const presetPageRowsMax = 100
export const presetDescriptionCharactersMax = 2_000
/** Higher numbers of a preset's version are no numbers of versions. */
export const presetVersionMax = 1_000_000_000
