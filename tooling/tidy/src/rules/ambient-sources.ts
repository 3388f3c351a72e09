import { isBuiltin } from "node:module";
import ts from "typescript";
import { lineOf, referencesOf, walk } from "../module-references.ts";
import type { Finding, Rule } from "../rule.ts";
import { shippedProjects } from "../workspace.ts";

/** Ambient members by the name of their object, each with what to use in its place. */
const bannedMembers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Date: { now: "host.clock.wallMs() for people, host.clock.monotonicMs() for durations" },
  performance: { now: "host.clock.monotonicMs()", timeOrigin: "host.clock.wallMs()" },
  Math: { random: "host.random.unit()" },
  crypto: { randomUUID: "host.random.id()", getRandomValues: "host.random" },
  process: { hrtime: "host.clock.monotonicMs()", uptime: "host.clock.monotonicMs()" },
  AbortSignal: { timeout: "host.timers.after() and an AbortController" },
};

const bannedGlobals: Readonly<Record<string, string>> = {
  setTimeout: "host.timers.after()",
  setInterval: "a PeriodicScheduler",
  setImmediate: "host.timers.afterPoll() or soon()",
};

/** Names that may not be imported from Node's own modules; `*` bans the module. */
const bannedImports: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  timers: { "*": "host.timers" },
  "timers/promises": { "*": "host.timers" },
  perf_hooks: { performance: "host.clock.monotonicMs()" },
  os: { uptime: "host.clock.bootMs()" },
  process: { hrtime: "host.clock.monotonicMs()", uptime: "host.clock.monotonicMs()" },
  crypto: {
    randomUUID: "host.random.id()",
    randomBytes: "host.random",
    randomInt: "host.random.unit()",
    randomFillSync: "host.random",
    getRandomValues: "host.random",
    webcrypto: "host.random",
  },
};

const globalObjects: ReadonlySet<string> = new Set(["globalThis", "global"]);

/** Where an ambient source is right, and why. Empty is the aim. */
const allowed: readonly { readonly file: string; readonly name: string; readonly reason: string }[] = [
  {
    file: "apps/cli/src/held-signals.ts",
    name: "setImmediate",
    reason: "works before anything is loaded, and for help the kernel is not",
  },
];

interface AmbientUse {
  readonly name: string;
  readonly replacement: string;
  readonly node: ts.Node;
}

function memberUse(node: ts.PropertyAccessExpression): AmbientUse | undefined {
  const member = node.name.text;
  let object = node.expression;
  if (ts.isIdentifier(object) && globalObjects.has(object.text)) {
    const replacement = bannedGlobals[member];
    return replacement === undefined ? undefined : { name: member, replacement, node };
  }
  // globalThis.performance.now is performance.now.
  if (
    ts.isPropertyAccessExpression(object) &&
    ts.isIdentifier(object.expression) &&
    globalObjects.has(object.expression.text)
  )
    object = object.name;
  if (!ts.isIdentifier(object)) return undefined;
  const replacement = bannedMembers[object.text]?.[member];
  return replacement === undefined ? undefined : { name: `${object.text}.${member}`, replacement, node };
}

/** Whether an identifier is the name of something here (a member, a key, a declaration), not a use of the global. */
function isName(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node;
  if (
    ts.isImportSpecifier(parent) ||
    ts.isExportSpecifier(parent) ||
    ts.isTypeQueryNode(parent) ||
    ts.isQualifiedName(parent)
  )
    return true;
  return "name" in parent && parent.name === node && !ts.isShorthandPropertyAssignment(parent);
}

function useAt(node: ts.Node): AmbientUse | undefined {
  if (ts.isPropertyAccessExpression(node)) return memberUse(node);
  if (
    ts.isNewExpression(node) &&
    ts.isIdentifier(node.expression) &&
    node.expression.text === "Date" &&
    (node.arguments?.length ?? 0) === 0
  ) {
    return { name: "new Date()", replacement: "new Date(host.clock.wallMs())", node };
  }
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === "Date") {
    return { name: "Date()", replacement: "new Date(host.clock.wallMs())", node };
  }
  if (ts.isIdentifier(node) && !isName(node)) {
    const replacement = Object.hasOwn(bannedGlobals, node.text) ? bannedGlobals[node.text] : undefined;
    if (replacement !== undefined) return { name: node.text, replacement, node };
  }
  return undefined;
}

function importUses(source: ts.SourceFile): readonly AmbientUse[] {
  return source.statements.flatMap((statement): AmbientUse[] => {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) return [];
    const module = statement.moduleSpecifier.text.replace(/^node:/, "");
    const banned = isBuiltin(statement.moduleSpecifier.text) ? bannedImports[module] : undefined;
    if (!banned) return [];
    const whole = banned["*"];
    if (whole !== undefined) return [{ name: statement.moduleSpecifier.text, replacement: whole, node: statement }];
    const bindings = statement.importClause?.namedBindings;
    if (!bindings || !ts.isNamedImports(bindings)) {
      return [
        {
          name: `all of ${statement.moduleSpecifier.text}`,
          replacement: "import by name, so that this rule can see what is used",
          node: statement,
        },
      ];
    }
    return bindings.elements.flatMap((element) => {
      const name = (element.propertyName ?? element.name).text;
      const replacement = Object.hasOwn(banned, name) ? banned[name] : undefined;
      return replacement === undefined ? [] : [{ name, replacement, node: element }];
    });
  });
}

function dynamicImportUses(source: ts.SourceFile): readonly AmbientUse[] {
  return referencesOf(source).flatMap(({ specifier, kind, line }) => {
    const whole = isBuiltin(specifier) ? bannedImports[specifier.replace(/^node:/, "")]?.["*"] : undefined;
    const isStatic = source.statements.some(
      (statement) => ts.isImportDeclaration(statement) && lineOf(statement) === line,
    );
    return whole === undefined || kind === "type" || isStatic
      ? []
      : [{ name: specifier, replacement: whole, node: source }];
  });
}

/** Time, timers and chance come from the `Host` that is passed in; only kernel knows the real ones. */
export const noAmbientTime: Rule = {
  title: "time, timers and randomness are passed in as Host; only kernel reads them",
  check(repository) {
    const findings: Finding[] = [];
    for (const project of shippedProjects(repository)) {
      if (project.key === "kernel") continue;
      for (const file of project.sources) {
        const source = repository.source(file);
        const uses: AmbientUse[] = [...importUses(source), ...dynamicImportUses(source)];
        walk(source, (node) => {
          const use = useAt(node);
          if (use) uses.push(use);
          // The identifier inside a reported member must not be reported again.
          return use === undefined;
        });
        for (const { name, replacement, node } of uses) {
          if (allowed.some((one) => one.file === file && one.name === name)) continue;
          findings.push({ file, line: lineOf(node), problem: `${name} is ambient`, instead: `use ${replacement}` });
        }
      }
    }
    return findings;
  },
};
