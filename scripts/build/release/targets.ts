// The platforms of a release, and the npm packages with the Bun runtime of each. The digests fix the exact runtimes.
import type { Build } from 'bun'
import type { Architecture } from './debian-libraries.ts'

/** The one Bun that makes releases; the runtimes below are of this version. */
export const bunVersion = '1.4.5'

export type Target = {
  /** Ends the name of the file. */
  name: string
  compileTarget: Build.CompileTarget
  runtime: { package: string; integrity: string }
  /** The package with libSQL's native part; its digest is in bun.lock. */
  nativePart: string
  /** The names of the architecture in packages and images; without it the platform has no packages and images. */
  packages?: { deb: Architecture; rpm: string }
}

export const targets: readonly Target[] = [
  {
    name: 'linux-x64',
    compileTarget: 'bun-linux-x64-baseline',
    runtime: {
      package: '@oven/bun-linux-x64-baseline',
      integrity: 'sha512-s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA==',
    },
    nativePart: '@libsql/linux-x64-gnu',
    packages: { deb: 'amd64', rpm: 'x86_64' },
  },
  {
    name: 'linux-arm64',
    compileTarget: 'bun-linux-arm64',
    runtime: {
      package: '@oven/bun-linux-aarch64',
      integrity: 'sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==',
    },
    nativePart: '@libsql/linux-arm64-gnu',
    packages: { deb: 'arm64', rpm: 'aarch64' },
  },
  {
    name: 'linux-x64-musl',
    compileTarget: 'bun-linux-x64-baseline-musl',
    runtime: {
      package: '@oven/bun-linux-x64-musl-baseline',
      integrity: 'sha512-cWJhU8h0+MiUgpSt99sQhjxLIIosKEcKYdtKddohokUvAuN6jKOy7g7+QDTZTXtwHxz93wL3BX+L6wXVPDUH3A==',
    },
    nativePart: '@libsql/linux-x64-musl',
  },
  {
    name: 'linux-arm64-musl',
    compileTarget: 'bun-linux-arm64-musl',
    runtime: {
      package: '@oven/bun-linux-aarch64-musl',
      integrity: 'sha512-XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg==',
    },
    nativePart: '@libsql/linux-arm64-musl',
  },
  {
    name: 'darwin-arm64',
    compileTarget: 'bun-darwin-arm64',
    runtime: {
      package: '@oven/bun-darwin-aarch64',
      integrity: 'sha512-4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==',
    },
    nativePart: '@libsql/darwin-arm64',
  },
  // Bun signs compiled programs for arm64 only. This one has the broken signature of its runtime (`help install`).
  {
    name: 'darwin-x64',
    compileTarget: 'bun-darwin-x64-baseline',
    runtime: {
      package: '@oven/bun-darwin-x64-baseline',
      integrity: 'sha512-zqfLA5A4B+hYMh5WYzYSot3uZ06FzhdP0OEwQisEzdirYtXGj5cQFlfy31BGfNsAsk1Gd/w/OxJ/jqqJ3cMclw==',
    },
    nativePart: '@libsql/darwin-x64',
  },
]
