import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import type { Browser, Page } from "playwright-core";

/** Where systems keep it. None is downloaded: a browser is not this repository's to install. */
const places: readonly string[] = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/snap/bin/chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

const browserPath = places.find((place) => existsSync(place));

export const hasChromium: boolean = browserPath !== undefined;

export function launchBrowser(): Promise<Browser> {
  if (browserPath === undefined) throw new Error("There is no Chromium on this machine.");
  // Its sandbox needs what containers rarely give; what it loads here is our own.
  return chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

export interface OpenedPage {
  readonly page: Page;
  /** What the page complained of: errors, and what its policy refused. */
  readonly complaints: readonly string[];
}

export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: "light" | "dark";
}

/** A page in a profile of its own. */
export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, height = 800, colorScheme = "light" }: PageOptions = {},
): Promise<OpenedPage> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  // Sooner than the test ends: then it is told what was waited for.
  page.setDefaultTimeout(60_000);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // A gateway that is away, and a token that is missing, are told by the browser as errors; the page handles both.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      complaints.push(message.text());
  });
  await page.goto(url);
  return { page, complaints };
}
