import type { Rule } from "./rule.ts";
import { noAmbientTime } from "./rules/ambient-sources.ts";
import { changesetsSpeak } from "./rules/changesets.ts";
import { completeReadme } from "./rules/complete-readme.ts";
import { configTwins } from "./rules/config-twins.ts";
import { declaredDependencies, dependencyVersions, oneSqlite } from "./rules/declared-dependencies.ts";
import { noEnvironment } from "./rules/environment.ts";
import { facesAreLists, namedExports, noBorrowedNames } from "./rules/faces.ts";
import { failuresAreShown } from "./rules/failures-page.ts";
import { tellingFileNames } from "./rules/file-names.ts";
import { glossaryIsCurrent } from "./rules/glossary.ts";
import { noSilentSkips, testsAssert } from "./rules/honest-tests.ts";
import { noImportCycles } from "./rules/import-cycles.ts";
import { importDirection, packageDoors, relativeImports } from "./rules/import-direction.ts";
import { invariantOwners, invariantWitnesses } from "./rules/invariants.ts";
import { noLooseEnds } from "./rules/loose-ends.ts";
import { manifestTwins } from "./rules/manifest-twins.ts";
import { protocolRulesShown } from "./rules/protocol-rules.ts";
import { readmeTwins } from "./rules/readme-twins.ts";
import { kernelStaysSmall } from "./rules/size.ts";
import { storeFilesAreSqlites } from "./rules/store-files.ts";
import { plainWording } from "./rules/wording.ts";

/** Every rule of the house, in the order in which a newcomer meets them. */
export const houseRules: readonly Rule[] = [
  importDirection,
  relativeImports,
  packageDoors,
  noImportCycles,
  declaredDependencies,
  dependencyVersions,
  oneSqlite,
  noAmbientTime,
  noEnvironment,
  storeFilesAreSqlites,
  invariantOwners,
  invariantWitnesses,
  protocolRulesShown,
  failuresAreShown,
  facesAreLists,
  namedExports,
  noBorrowedNames,
  manifestTwins,
  configTwins,
  readmeTwins,
  completeReadme,
  tellingFileNames,
  kernelStaysSmall,
  glossaryIsCurrent,
  noSilentSkips,
  testsAssert,
  noLooseEnds,
  changesetsSpeak,
  plainWording,
];
