// The fonts of the admin page, so that it looks the same on every machine: Inter for text and JetBrains Mono for code, each for Latin and
// Latin Extended, in weights from 400 to 600. The texts are base64: text is what every runtime can import (src/page/fonts/README.md).

import inter from './fonts/inter.woff2.txt' with { type: 'text' }
import interExt from './fonts/inter-ext.woff2.txt' with { type: 'text' }
import mono from './fonts/mono.woff2.txt' with { type: 'text' }
import monoExt from './fonts/mono-ext.woff2.txt' with { type: 'text' }

/** WOFF2 files, by the name under which the style sheet asks for them. */
export const fonts: ReadonlyMap<string, Uint8Array<ArrayBuffer>> = new Map(
  Object.entries({ inter, 'inter-ext': interExt, mono, 'mono-ext': monoExt }).map(([name, base64]) => [
    `${name}.woff2`,
    Uint8Array.fromBase64(base64),
  ]),
)
