import { createAgent, defineTool } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startGateway } from "../src/index.ts";
import { ensurePage } from "./inside/built-page.ts";
import { hasChromium, launchBrowser, openPage } from "./inside/console-browser.ts";
import type { OpenedPage, PageOptions } from "./inside/console-browser.ts";
import { openGateway, post, until } from "./inside/open-gateway.ts";

let browser: Browser | undefined;
beforeAll(async () => {
  if (!hasChromium) return;
  ensurePage();
  browser = await launchBrowser();
}, 120_000);
afterAll(() => browser?.close());
afterEach(async () => {
  for (const context of browser?.contexts() ?? []) await context.close();
});

async function look(url: string, options?: PageOptions): Promise<OpenedPage> {
  if (!browser) throw new Error("The browser was not started.");
  return openPage(browser, url, options);
}

/** What was said, once the page has read all of it from the store: words may be shown before. */
async function texts(page: Page, kind: "user" | "answer", count: number): Promise<readonly string[]> {
  await page
    .locator(`.${kind}`)
    .nth(count - 1)
    .waitFor();
  return page.locator(`.${kind} .prose`).allTextContents();
}

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

const hostile = `<img src=x onerror="window.isHit = 1"><script>window.isHit = 1</script>`;

const shell = defineTool({
  name: "shell",
  description: "Runs a command.",
  input: z.object({ command: z.string() }),
  execute: ({ command }) => Promise.resolve(`${command}: ${hostile}`),
});

// A browser is several processes, and it shares two processors with everything else that is tested.
describe.skipIf(!hasChromium)("the console in a browser", { timeout: 90_000 }, () => {
  it("begins a session by keys alone, and shows the answer as it comes", async () => {
    const goOn = gate();
    const { url, store } = await openGateway([
      {
        parts: [
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: "Good " },
          { type: "text-delta", id: "t", delta: "morning." },
          { type: "text-end", id: "t" },
          {
            type: "finish",
            finishReason: { unified: "stop", raw: "stop" },
            usage: {
              inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
              outputTokens: { total: 1, text: 1, reasoning: undefined },
            },
          },
        ],
        between: (() => {
          let count = 0;
          return async () => (++count === 2 ? goOn.opened : undefined);
        })(),
      },
    ]);
    const { page, complaints } = await look(url);
    await page.getByText("No turn runs.").waitFor();
    await page.keyboard.press("n");
    const box = page.getByRole("textbox", { name: "Message" });
    await box.waitFor();
    await page.keyboard.type("Hello");
    await page.keyboard.press("Enter");
    await page.locator(".answer", { hasText: /^AnswerGood $/ }).waitFor();
    await page.locator(".facts", { hasText: `pid ${process.pid}` }).waitFor();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    goOn.open();
    await page.locator(".answer", { hasText: "Good morning." }).waitFor();
    await page.locator(".session-head .pill", { hasText: "idle" }).waitFor();
    expect(await page.locator(".answer").count()).toBe(1);
    expect(await texts(page, "user", 1)).toEqual(["Hello"]);
    // What was sent is in the conversation now, and nowhere else.
    expect(await page.locator(".sent").count()).toBe(0);
    expect((await store.sessions.list()).sessions).toHaveLength(1);
    expect(complaints).toEqual([]);
  });

  it("shows markup of tools, models, users and titles as the text it is", async () => {
    const { url } = await openGateway(
      [
        { text: `Look: ${hostile}`, calls: [{ name: "shell", input: { command: hostile } }] },
        { text: `**${hostile}** \`${hostile}\`` },
      ],
      {},
      { tools: [shell] },
    );
    await post(`${url}/v1/sessions/s/turns`, { input: hostile });
    const { page, complaints } = await look(`${url}/#/s/s`);
    await page.locator(".call summary").click();
    await page.locator(".call pre", { hasText: `${hostile}: ${hostile}` }).waitFor();
    await page.locator(".answer strong", { hasText: hostile }).waitFor();
    expect(await page.locator("h1", { hasText: "<img" }).count()).toBe(1);
    expect(await page.locator(".item-title", { hasText: "<img" }).count()).toBe(1);
    expect(await page.locator("img, main script, main iframe").count()).toBe(0);
    expect(await page.evaluate("window.isHit")).toBeUndefined();
    expect(complaints).toEqual([]);
    // And where a mistake let text become markup, the browser would refuse it.
    expect(
      await page.evaluate("try { document.body.innerHTML = '<b>x</b>'; 'taken' } catch (error) { error.name }"),
    ).toBe("TypeError");
    const isRun =
      "const one = document.createElement('script'); try { one.text = 'window.isHit = 2' } catch {} document.head.append(one); window.isHit";
    expect(
      await page.evaluate(`(() => { ${isRun.replace(/window\.isHit$/, "return window.isHit")} })()`),
    ).toBeUndefined();
  });

  it("asks for the token, keeps it in the tab alone, and asks again when it is wrong", async () => {
    const { url } = await openGateway([{ text: "Hello." }], { token: "correct-horse" });
    await post(`${url}/v1/sessions/s/turns`, { input: "Hi" }, { authorization: "Bearer correct-horse" });
    const { page, complaints } = await look(url);
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    await page.getByLabel("Token").fill("wrong-token");
    await page.keyboard.press("Enter");
    await dialog.getByText("That one was refused.").waitFor();
    await page.getByLabel("Token").fill("correct-horse");
    await page.getByRole("button", { name: "Go on" }).click();
    await page.locator(".item", { hasText: "Hi" }).click();
    await page.locator(".answer", { hasText: "Hello." }).waitFor();
    expect(
      await page.evaluate("[Object.values(sessionStorage), Object.values(localStorage), document.cookie]"),
    ).toEqual([["correct-horse"], [], ""]);
    expect(page.url()).not.toContain("correct-horse");
    await page.reload();
    await page.locator(".answer", { hasText: "Hello." }).waitFor();
    await page.getByRole("button", { name: "Forget token" }).click();
    await dialog.waitFor();
    expect(complaints).toEqual([]);
  });

  it("steers and stops the turn that runs", async () => {
    const { url, store } = await openGateway([{ silentAfter: "Let me see " }, { text: "later" }]);
    void post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    await until(async () => (await store.turns.running("s")).length > 0);
    const { page, complaints } = await look(`${url}/#/s/s`);
    await page.locator(".answer[data-live]", { hasText: "Let me see" }).waitFor();
    await page.getByRole("textbox", { name: "Message" }).fill("be brief");
    await page.getByRole("button", { name: "Steer" }).click();
    await page.locator(".sent", { hasText: "be brief" }).getByText("queued").waitFor();
    await page.locator(".facts", { hasText: "1 waiting" }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator(".note", { hasText: "Interrupted by http: " }).waitFor();
    // What it steered too late for is answered by the next turn.
    await page.locator(".answer", { hasText: "later" }).waitFor();
    expect(await texts(page, "user", 2)).toEqual(["Hi", "be brief"]);
    expect(complaints).toEqual([]);
  });

  it("shows a stall as it is settled, on the session and on the board", async () => {
    const store = createMemoryStore({ host: systemHost });
    const model = scriptedModel([{ silentAfter: "Let me see " }]);
    const agent = await createAgent({ model, store }, { liveness: { timeoutMs: 1500, pollMs: 100 } });
    await using gateway = await startGateway({ agent, store }, { port: 0, drainMs: 0 });
    const { url } = gateway;
    const { page } = await look(`${url}/#/s/s`);
    await page.getByRole("textbox", { name: "Message" }).fill("Hi");
    await page.keyboard.press("Enter");
    await page.locator(".note", { hasText: "Interrupted by watchdog: No progress for" }).waitFor();
    await page.locator(".session-head .pill", { hasText: "idle" }).waitFor();
    await page.getByRole("link", { name: "Turnkeeper" }).click();
    await page.locator(".happenings li", { hasText: "Turn interrupted" }).waitFor();
    await page.close();
  });

  it("deletes a session by keys once that was said twice, and one that was deleted elsewhere says so", async () => {
    const { url, store } = await openGateway([{ text: "one" }, { text: "two" }]);
    await post(`${url}/v1/sessions/mine/turns`, { input: "Keep me" });
    await post(`${url}/v1/sessions/other/turns`, { input: "Lose me" });
    const { page, complaints } = await look(`${url}/#/s/mine`);
    await page.locator(".answer", { hasText: "one" }).waitFor();
    await page.locator(".item", { hasText: "Keep me" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("D");
    const dialog = page.getByRole("dialog", { name: "Delete this session?" });
    await dialog.getByText("Keep me").waitFor();
    // What is ready to be pressed changes nothing.
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    expect(await store.sessions.read("mine")).toBeDefined();
    await page.keyboard.press("D");
    await dialog.waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/$/);
    await page.locator(".item", { hasText: "Keep me" }).waitFor({ state: "detached" });
    expect(await store.sessions.read("mine")).toBeUndefined();

    await page.locator(".item", { hasText: "Lose me" }).click();
    await page.locator(".answer", { hasText: "two" }).waitFor();
    await fetch(`${url}/v1/sessions/other`, { method: "DELETE" });
    await page.getByText("This session was deleted.", { exact: false }).first().waitFor();
    await page.locator(".session-head .pill", { hasText: "deleted" }).waitFor();
    await page.locator(".item", { hasText: "Lose me" }).waitFor({ state: "detached" });
    expect(await page.locator(".answer").allTextContents()).toHaveLength(1);
    expect(await page.getByRole("button", { name: "Delete", exact: true }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  it("asks for an approval, and the call runs once it is allowed", async () => {
    let runCount = 0;
    const write = defineTool({
      name: "write_note",
      description: "Writes.",
      input: z.object({ text: z.string() }),
      needsApproval: true,
      execute: () => Promise.resolve(`written ${++runCount}`),
    });
    const { url } = await openGateway(
      [
        { text: "I will.", calls: [{ name: "write_note", input: { text: "remember" } }] },
        { text: "It is written down for good." },
      ],
      {},
      { tools: [write] },
    );
    const { page, complaints } = await look(`${url}/#/s/s`);
    await page.getByRole("textbox", { name: "Message" }).fill("Write it down");
    await page.keyboard.press("Enter");
    const call = page.locator(".call[data-state=asks]");
    await call.locator("pre", { hasText: "remember" }).waitFor();
    expect(runCount).toBe(0);
    // A key goes to the question; only the button answers it.
    await page.keyboard.press("Escape");
    await page.keyboard.press("a");
    expect(runCount).toBe(0);
    await page.keyboard.press("Enter");
    await page.locator(".call[data-state=ok]").waitFor();
    await page.locator(".answer", { hasText: "It is written down for good." }).waitFor();
    await page.locator(".session-head .pill", { hasText: "idle" }).waitFor();
    expect(runCount).toBe(1);
    expect(await texts(page, "answer", 2)).toEqual(["I will.", "It is written down for good."]);
    expect(complaints).toEqual([]);
  });

  it("says what the gateway refuses, and keeps the message", async () => {
    const { url, store } = await openGateway([{ silentAfter: "…" }]);
    void post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    await until(async () => (await store.turns.running("s")).length > 0);
    const { page } = await look(`${url}/#/s/s`);
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.getByLabel("While a turn runs").selectOption("reject");
    await page.getByRole("textbox", { name: "Message" }).fill("Now or never");
    await page.keyboard.press("Enter");
    const sent = page.locator(".sent", { hasText: "Now or never" });
    await sent.getByRole("button", { name: "Edit" }).click();
    await sent.waitFor({ state: "detached" });
    expect(await page.getByRole("textbox", { name: "Message" }).inputValue()).toBe("Now or never");
    expect((await store.inbox.pending("s")).length).toBe(0);
  });

  it("goes on by itself after the gateway was restarted, and what was sent meanwhile runs once", async () => {
    const store = createMemoryStore({ host: systemHost });
    const first = await openGateway([{ text: "before" }], {}, { store });
    const { page, complaints } = await look(`${first.url}/#/s/s`);
    await page.getByRole("textbox", { name: "Message" }).fill("one");
    await page.keyboard.press("Enter");
    await page.locator(".answer", { hasText: "before" }).waitFor();
    await page.locator(".session-head .pill", { hasText: "idle" }).waitFor();
    await first.gateway.close();
    await page.getByText("The gateway does not answer.").waitFor();
    await page.getByRole("textbox", { name: "Message" }).fill("two");
    await page.keyboard.press("Enter");
    await page.locator(".sent", { hasText: "runs once" }).waitFor();
    const model = scriptedModel([{ text: "after" }, { text: "another" }]);
    const agent = await createAgent({ model, store });
    const second = await startGateway({ agent, store }, { port: Number(new URL(first.url).port), drainMs: 0 });
    try {
      await page.locator(".answer", { hasText: "after" }).waitFor();
      await page.getByText("The gateway does not answer.").waitFor({ state: "hidden" });
      // What others say is heard again too.
      await post(`${first.url}/v1/sessions/s/turns`, { input: "three" });
      await page.locator(".answer", { hasText: "another" }).waitFor();
      expect(await texts(page, "user", 3)).toEqual(["one", "two", "three"]);
      expect(await texts(page, "answer", 3)).toEqual(["before", "after", "another"]);
      expect(model.requests).toHaveLength(2);
      expect(complaints).toEqual([]);
    } finally {
      await page.close();
      await second.close();
    }
  });

  it.each([
    ["light", "rgb(245, 246, 247)"],
    ["dark", "rgb(18, 21, 24)"],
  ] as const)("is %s where that is preferred, and fits a phone", async (colorScheme, background) => {
    const { url } = await openGateway([
      { text: `${"long".repeat(200)}\n\n\`\`\`\n${"wide ".repeat(200)}\n\`\`\`` },
      { silentAfter: "…" },
    ]);
    await post(`${url}/v1/sessions/s/turns`, { input: "x".repeat(300) });
    void post(`${url}/v1/sessions/s/turns`, { input: "again" });
    const { page, complaints } = await look(url, { width: 360, height: 740, colorScheme });
    expect(await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")).toBe(background);
    const overflow = "document.scrollingElement.scrollWidth - innerWidth";
    await page.locator(".turns tr .pill").waitFor();
    expect(await page.evaluate(overflow)).toBe(0);
    await page.locator(".item").first().click();
    await page.locator(".answer pre").waitFor();
    expect(await page.evaluate(overflow)).toBe(0);
    expect(
      await page.evaluate(
        "document.querySelector('.scroller').scrollWidth - document.querySelector('.scroller').clientWidth",
      ),
    ).toBe(0);
    expect(await page.locator(".sessions").isVisible()).toBe(false);
    await page.getByRole("link", { name: "Back to everything" }).click();
    await page.locator(".item").first().waitFor();
    expect(complaints).toEqual([]);
  });

  it("names every control, and leads the keyboard through the page in order", async () => {
    const { url } = await openGateway([{ text: "Hello." }]);
    await post(`${url}/v1/sessions/s/turns`, { input: "Hi" });
    const { page } = await look(`${url}/#/s/s`);
    await page.locator(".answer").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.getByLabel("Single keys work").uncheck();
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    expect(page.url()).toContain("#/s/s");
    await page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges()");
    const reached: string[] = [];
    for (let press = 0; press < 12; press++) {
      await page.keyboard.press("Tab");
      reached.push(
        await page.evaluate<string>(
          "(() => { const one = document.activeElement; return one.getAttribute('aria-label') ?? one.textContent.trim().slice(0, 20) })()",
        ),
      );
    }
    const inOrder = ["Turnkeeper", "Filter sessions", "New", "Hi", "Conversation", "Message", "Send"];
    const found = reached.flatMap((one) => inOrder.find((name) => one.startsWith(name)) ?? []);
    expect(found).toEqual(inOrder);
  });
});
