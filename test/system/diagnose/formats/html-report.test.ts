import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import packed from "@sparticuz/chromium";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { toHtml } from "../../../../src/diagnose/formats/html-report.ts";
import type { Report } from "../../../../src/diagnose/report/report.ts";
import { sample, withAlike, withMatrix } from "../../../fixtures/diagnose/reports/samples.ts";
import { temporaryFolder } from "../../../helpers/home.ts";

/** A page in a real browser: what is laid out, what is seen, and what it tries to do. */

const guardMs = 60_000;
let browser: Browser;

beforeAll(async () => {
  const executablePath = await packed.executablePath();
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
}, guardMs);

afterAll(() => browser.close());

describe.each([1280, 390])("at %i pixels", (width) => {
  test("nothing sticks out, nothing is asked of anybody, and a picture can be taken", {
    timeout: guardMs,
  }, async () => {
    for (const report of [withMatrix(sample("hostile"), 40), sample("bad")]) {
      const { page, folder, troubles } = await open(report, { width });
      await page.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true");
      const [scrollWidth, clientWidth] = (await page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]",
      )) as [number, number];
      expect(scrollWidth).toBeLessThanOrEqual(clientWidth);
      expect(await page.evaluate(cutOff)).toEqual([]);
      const picture = path.join(folder, `${width}.png`);
      // A busy browser has nothing to take a picture of before its first frames.
      await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
      await page.screenshot({ path: picture });
      expect(readFileSync(picture).subarray(1, 4).toString()).toBe("PNG");
      expect(troubles).toEqual([]);
    }
  });
});

test.each(["light", "dark"] as const)(
  "every text is readable in %s: a contrast of at least 4.5",
  { timeout: guardMs },
  async (colorScheme) => {
    for (const width of [1280, 390]) {
      const { page } = await open(withMatrix(sample("bad"), 3), { width, colorScheme });
      expect(await page.evaluate(tooFaint)).toEqual([]);
    }
  },
);

test("what a server sends is shown and never becomes a part of the page", { timeout: guardMs }, async () => {
  const { page, troubles } = await open(sample("hostile"), { width: 1280 });
  expect(
    await page.evaluate("document.querySelectorAll('script, img, iframe, object, embed, link, base, form, b').length"),
  ).toBe(0);
  expect(
    await page.evaluate(
      "[...document.querySelectorAll('*')].flatMap((item) => [...item.attributes]).filter(({ name }) => name.startsWith('on'))",
    ),
  ).toEqual([]);
  expect(await page.textContent("h1")).toContain("</script><script>alert(1)</script><img src=x onerror=alert(2)>");
  expect(troubles).toEqual([]);
});

test("it has landmarks, headings and tables that a screen reader can name, also as cards", {
  timeout: guardMs,
}, async () => {
  const { page } = await open(sample("bad"), { width: 390 });
  for (const role of ["banner", "navigation", "main", "contentinfo"] as const)
    expect(await page.getByRole(role).count(), role).toBe(1);
  expect(await page.getByRole("heading", { level: 1 }).count()).toBe(1);
  expect(await page.getByRole("table").count()).toBe(2);
  expect(await page.getByRole("rowheader", { name: "Cline CLI" }).count()).toBe(1);
  expect(await page.getByRole("img", { name: "21 of 100 points" }).count()).toBe(1);
});

test("tools that fare alike take one line, not a card for each host", { timeout: guardMs }, async () => {
  const { page } = await open(withAlike({ ...sample("good"), checks: sample("good").checks.slice(0, 1) }, 36), {
    width: 390,
  });
  expect(await page.evaluate("document.querySelector('#hosts').getBoundingClientRect().height")).toBeLessThan(300);
  expect(await page.textContent("#hosts summary")).toBe("36 tools: ✓ everywhere (3 hosts): gets a handle in time");
});

test("what is folded is on paper too", { timeout: guardMs }, async () => {
  const { page } = await open(sample("hostile"), { width: 1280 });
  const height = () => page.evaluate("document.querySelector('.evidence details').getBoundingClientRect().height");
  expect(await height()).toBeLessThan(100);
  await page.emulateMedia({ media: "print" });
  expect(await height()).toBeGreaterThan(300);
});

interface Look {
  readonly width: number;
  readonly colorScheme?: "light" | "dark";
}

/** Opens the report as a file; everything but this file is refused and remembered, like errors and dialogs. */
async function open(
  report: Report,
  { width, colorScheme = "light" }: Look,
): Promise<{ page: Page; folder: string; troubles: string[] }> {
  const folder = temporaryFolder();
  const file = path.join(folder, "report.html");
  writeFileSync(file, toHtml(report));
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, locale: "en-US" });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
  page.on("console", (message) => troubles.push(`console: ${message.text()}`));
  page.on("dialog", (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const own = pathToFileURL(file).href;
  await page.route("**", async (route) => {
    if (route.request().url() === own) return await route.continue();
    troubles.push(`request: ${route.request().url()}`);
    return await route.abort();
  });
  await page.goto(own);
  return { page, folder, troubles };
}

/**
 * Elements whose text is wider than they are, so that it is hidden or lies over its neighbour. A head that is there for
 * the ear only may be.
 */
const cutOff = `[...document.querySelectorAll("h1, h2, h3, p, pre, code, summary, th, td, dd, dt, li")]
  .filter((item) => item.scrollWidth > item.clientWidth + 1 && !(item.closest("thead")?.offsetWidth <= 1) && getComputedStyle(item).display !== "inline")
  .map((item) => item.tagName + " " + item.className + ": " + item.textContent.slice(0, 40))`;

/** Texts whose colour is too near to what is behind them (WCAG 2.2, 1.4.3). */
const tooFaint = `(() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => numbers(color).slice(0, 3).map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (item) => {
    for (let at = item; at !== null; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if ((numbers(color)[3] ?? 1) > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const item = texts.currentNode.parentElement;
    if (texts.currentNode.textContent.trim() === "" || item.getClientRects().length === 0) continue;
    const style = getComputedStyle(item);
    const pair = [light(item instanceof SVGElement ? style.fill : style.color), light(ground(item))].sort((a, b) => b - a);
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (contrast < 4.5) found.push(contrast.toFixed(2) + " " + item.className + ": " + item.textContent.slice(0, 40));
  }
  return found;
})()`;
