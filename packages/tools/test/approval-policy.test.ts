import { mkdir, symlink } from "node:fs/promises";
import path from "node:path";
import { CodedError } from "@turnkeeper/kernel";
import { describe, expect, test } from "vitest";
import { approvalPolicy } from "../src/index.ts";
import type { ApprovalRules } from "../src/index.ts";
import { workbench } from "./workbench.ts";

const workspace = "/nowhere/workspace";

function shell(rules: ApprovalRules, command: string): string {
  return approvalPolicy(rules).decide({ name: "shell", input: { command }, workspace, needsApproval: true }).decision;
}

describe("one decision for all", () => {
  test.each(["ask", "allow", "deny"] as const)("%s is for every call that needs approval, and no other", (decision) => {
    const policy = approvalPolicy(decision);
    const call = { name: "any", input: {}, workspace };
    expect(policy.decide({ ...call, needsApproval: true })).toEqual({ decision, rule: "*" });
    expect(policy.decide({ ...call, needsApproval: false })).toEqual({ decision: "allow" });
  });
});

describe("rules by tool", () => {
  test("a rule that names a tool decides also where the tool would not ask", () => {
    const policy = approvalPolicy({ "*": "allow", read_file: "ask", "mcp__git__*": "deny", mcp__git__log: "allow" });
    const decide = (name: string, needsApproval: boolean): unknown =>
      policy.decide({ name, input: {}, workspace, needsApproval }).decision;
    expect(decide("read_file", false)).toBe("ask");
    expect(decide("shell", true)).toBe("allow");
    expect(decide("list_files", false)).toBe("allow");
    expect(decide("mcp__git__push", true)).toBe("deny");
    // Denied by one rule is denied: a nearer one does not take it back.
    expect(decide("mcp__git__log", true)).toBe("deny");
  });

  test("without a rule, what needs approval is asked for", () => {
    expect(shell({}, "ls")).toBe("ask");
    expect(shell({ write_file: "allow" }, "ls")).toBe("ask");
  });

  test("deny wins over ask, ask over allow, and what fits nothing is as otherwise says", () => {
    const rules: ApprovalRules = {
      "*": "deny",
      shell: { deny: ["git push*"], ask: ["git commit*"], allow: ["git *"], otherwise: "ask" },
    };
    expect(shell(rules, "git push --force")).toBe("deny");
    expect(shell(rules, "git commit -m x")).toBe("ask");
    expect(shell(rules, "git status")).toBe("allow");
    expect(shell(rules, "ls")).toBe("ask");
    expect(shell({ "*": "deny", shell: { allow: ["git *"] } }, "ls")).toBe("deny");
  });

  test("the verdict names what decided", () => {
    const policy = approvalPolicy({ shell: { deny: ["rm *"], allow: ["ls"] } });
    const decide = (command: string): unknown =>
      policy.decide({ name: "shell", input: { command }, workspace, needsApproval: true });
    expect(decide("ls; rm x")).toEqual({ decision: "deny", rule: "shell.deny: rm *" });
    expect(decide("ls")).toEqual({ decision: "allow", rule: "shell.allow: ls" });
    expect(decide("pwd")).toEqual({ decision: "ask" });
  });

  test.each([
    "sometimes",
    7,
    { shell: "sometimes" },
    { shell: { allow: "git status" } },
    { shell: { permit: [] } },
    { "rm -rf": "allow" },
    { shell: { allow: [" "] } },
  ])("rules such as %j are refused", (rules) => {
    try {
      approvalPolicy(rules as ApprovalRules);
      expect.unreachable();
    } catch (error) {
      expect(CodedError.is(error, "OPTION_INVALID")).toBe(true);
    }
  });
});

describe("a command that is allowed", () => {
  const rules: ApprovalRules = { shell: { allow: ["git status*", "ls", "npm run *", "echo *"], otherwise: "ask" } };

  test.each([
    "git status",
    "git status -s",
    "git  status\t--porcelain",
    "git status 'a b'",
    'git "status" "a;b"',
    "ls",
    "npm run test",
    "npm run",
    "git status --format=x",
  ])("%s runs unasked", (command) => expect(shell(rules, command)).toBe("allow"));

  test.each([
    "git status; rm -rf x",
    "git status;rm -rf x",
    "git status && rm x",
    "git status & rm x",
    "git status &",
    "git status | sh",
    "git status || rm x",
    "git status\nrm x",
    "git status\r\nrm x",
    "git status\\\nx",
    "git status $(rm x)",
    "git status `rm x`",
    'git status "$(rm x)"',
    'git status "`rm x`"',
    "git status ${x:-$(rm x)}",
    "git status <(rm x)",
    "git status > /etc/passwd",
    "git status >out",
    "git status < in",
    "git status 2>&1",
    "git status <<<x",
    "git status $HOME",
    "git status *",
    "git status ~",
    "git status {a,b}",
    "git status [a]",
    "git status ?",
    "git status # x",
    "git status !!",
    "git status \\; rm",
    "git status 'open",
    'git status "open',
    'git status "a\\"b"',
    "git status $'\\x3b'",
    "PATH=. git status",
    "GIT_PAGER='rm x' git status",
    "'git status'",
    '"git status"',
    "./git status",
    "/opt/git status",
    "sudo git status",
    "(git status)",
    "{ git status; }",
    "! git status",
    "git\u00a0status",
    "git status\u2028rm x",
    "git status\u0000; rm x",
    "git status\u200b",
    "git\u2003status",
    "ls -l",
    "npm rune x",
    "",
    " ",
  ])("%j does not pass for it", (command) => expect(shell(rules, command)).toBe("ask"));
});

describe("a command that is denied", () => {
  const rules: ApprovalRules = { "*": "allow", shell: { deny: ["rm *", "git push*"], otherwise: "allow" } };

  test.each([
    "rm x",
    "rm",
    "ls; rm x",
    "ls && rm -rf x",
    "ls | rm x",
    "ls\nrm x",
    "echo $(rm x)",
    'echo "$(rm x)"',
    'echo "a `rm x` b"',
    'echo "$(date)" ; rm -rf x',
    'echo "$(echo "$(rm x)")"',
    "echo `rm x`",
    "(rm x)",
    "{ rm x; }",
    "/bin/rm x",
    "r'm' x",
    "r$'m' x | cat",
    'r""m x',
    "\\rm x",
    "rm\\\n x",
    "A=1 rm x",
    "if true; then rm x; fi",
    "! rm x",
    "sudo rm x",
    "sudo -u root /bin/rm x",
    "env A=1 rm x",
    "nohup timeout 5 rm x &",
    "sh -c 'rm x'",
    'bash -c "cd y && rm x"',
    "bash -c 'bash -c \"rm x\"'",
    "find . -exec rm {} +",
    "ls | xargs rm",
    "eval 'rm x'",
    "cat <(rm x)",
    "ssh host git push",
    "git push origin",
    `${'echo "$('.repeat(200)}rm x`,
  ])("%j is found", (command) => expect(shell(rules, command)).toBe("deny"));

  test.each(["ls", "git rm x", "echo 'rm x'", "npm run rm", "rmdir x", "git commit -m 'rm x; git push'"])(
    "%j is not meant",
    (command) => expect(shell(rules, command)).toBe("allow"),
  );

  test.each(["$(echo rm) x", "$X x", "ls *", "r$'\\x6d' x", "python -c 'x' > y"])(
    "%j cannot be read whole and is asked for",
    (command) => expect(shell(rules, command)).toBe("ask"),
  );

  test("without anything denied, allow is allow", () =>
    expect(shell({ shell: "allow" }, "$(echo rm) x")).toBe("allow"));

  test("a line that is longer than any that can run is met by whatever is denied, and never allowed", () => {
    const command = `echo ${"x".repeat(200_000)}`;
    expect(shell(rules, command)).toBe("deny");
    expect(shell({ shell: { allow: ["echo *"], otherwise: "ask" } }, command)).toBe("ask");
  });

  test("long lines are judged in time", () => {
    for (const command of [
      `${"env ".repeat(30_000)}x`,
      `sh -c '${"sh -c ".repeat(20_000)}'`,
      '"$('.repeat(50_000),
      "(".repeat(100_000),
      "é".repeat(130_000),
    ]) {
      expect(["allow", "ask", "deny"]).toContain(shell(rules, command));
    }
  });
});

describe("paths", () => {
  const decide = (rules: ApprovalRules, file: string, folder = workspace): string =>
    approvalPolicy(rules).decide({
      name: "write_file",
      input: { path: file, content: "" },
      workspace: folder,
      needsApproval: true,
    }).decision;

  test("are judged in one spelling", () => {
    const rules: ApprovalRules = { write_file: { allow: ["src/*"], deny: ["*.env", "src/secret/*"] } };
    for (const file of ["src/a", "./src/a", "src//a", "src/x/../a", `${workspace}/src/a`, "src/deep/a"]) {
      expect([file, decide(rules, file)]).toEqual([file, "allow"]);
    }
    for (const file of ["src/../a", "a", "../src/a", "..", "/src/a", "/etc/src/a"]) {
      expect([file, decide(rules, file)]).toEqual([file, "ask"]);
    }
    for (const file of ["src/secret/a", "src/x/../secret/a", ".env", "src/.env", "src/x/prod.env"]) {
      expect([file, decide(rules, file)]).toEqual([file, "deny"]);
    }
  });

  test("count by where a link leads too", async () => {
    const { folder } = await workbench();
    await mkdir(path.join(folder, ".git"));
    await mkdir(path.join(folder, "src"));
    await symlink("../.git", path.join(folder, "src", "link"));
    expect(decide({ write_file: { allow: ["src/*"] } }, "src/link/config", folder)).toBe("ask");
    expect(decide({ write_file: { deny: [".git/*"], otherwise: "allow" } }, "src/link/config", folder)).toBe("deny");
  });
});

describe("addresses", () => {
  const decide = (rules: ApprovalRules, url: string): string =>
    approvalPolicy(rules).decide({ name: "fetch_url", input: { url }, workspace, needsApproval: true }).decision;

  test.each([
    ["docs.rs", "https://docs.rs/x", "allow"],
    ["docs.rs", "https://DOCS.RS./x", "allow"],
    ["docs.rs", "https://docs.rs.evil.test/x", "ask"],
    ["docs.rs", "https://evil.test/docs.rs", "ask"],
    ["docs.rs", "https://docs.rs@evil.test/", "ask"],
    ["docs.rs", "https://sub.docs.rs/", "ask"],
    ["*.docs.rs", "https://sub.docs.rs/", "allow"],
    ["*.docs.rs", "https://evildocs.rs/", "ask"],
    ["https://docs.rs/a/*", "https://docs.rs/a/b", "allow"],
    ["https://docs.rs/a/*", "https://docs.rs/a/../b", "ask"],
    ["https://docs.rs/a/*", "https://docs.rs/a/%2e%2e/b", "ask"],
    ["https://docs.rs/*", "http://docs.rs/", "ask"],
    ["docs.rs:8443", "https://docs.rs:8443/", "allow"],
    ["docs.rs:8443", "https://docs.rs/", "ask"],
    ["docs.*", "https://docs.evil.test/", "ask"],
  ])("%s and %s: %s", (pattern, url, decision) => {
    expect(decide({ fetch_url: { allow: [pattern], otherwise: "ask" } }, url)).toBe(decision);
  });

  test("that are denied are so in every spelling", () => {
    const rules: ApprovalRules = { fetch_url: { deny: ["evil.test", "good.test/admin*"], otherwise: "allow" } };
    for (const url of [
      "https://evil.test/",
      "https://EVIL.test./x",
      "http://evil.test:8080/",
      "https://good.test/%61dmin/x",
    ]) {
      expect(decide(rules, url)).toBe("deny");
    }
    expect(decide(rules, "https://good.test/x")).toBe("allow");
    expect(decide(rules, "no address")).toBe("ask");
  });
});

test("of other tools the input as JSON is judged, whatever the order of its keys", () => {
  const policy = approvalPolicy({ other: { allow: ['{"a":1,"b":*}'] } });
  for (const input of [
    { a: 1, b: 2 },
    { b: 2, a: 1 },
  ]) {
    expect(policy.decide({ name: "other", input, workspace, needsApproval: true }).decision).toBe("allow");
  }
});
