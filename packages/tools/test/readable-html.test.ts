import fc from "fast-check";
import { expect, test } from "vitest";
import { readableHtml } from "../src/readable-html.ts";

const textOf = (html: string): string => readableHtml(html, "https://example.test/dir/page").text;

test("blocks, headings and inline text read as Markdown", () => {
  expect(textOf("<h2>A  <em>b</em></h2><p>c <b>d</b>\n e</p><div>f<br>g</div><hr>h")).toBe(
    "## A b\n\nc d e\n\nf\ng\n\n---\n\nh",
  );
});

test("lists keep their signs and their depth", () => {
  expect(textOf("<ul><li>a<li><p>b</p><ol><li>c</li><li>d</li></ol></ul>e")).toBe("- a\n- b\n  1. c\n  2. d\n\ne");
});

test("links are whole, others than web links are only text", () => {
  expect(textOf("<a href='../b?c=1#d'>x</a> <a href='javascript:alert(1)'>y</a> <a href='#top'>z</a>")).toBe(
    "[x](https://example.test/b?c=1#d) y z",
  );
});

test("code keeps its lines and its white space", () => {
  expect(textOf("<p>run <code>a  b</code><pre><code>if x:\n    y()\n</code></pre>after")).toContain(
    "```\nif x:\n    y()\n\n```\n\nafter",
  );
});

test("tables are rows", () => {
  expect(textOf("<table><tr><th>a</th><th>b</th></tr><tr><td>c</td><td>d</td></tr></table>")).toBe("a | b\nc | d");
});

test("scripts, styles and what is hidden are left out", () => {
  expect(
    textOf(
      "a<script>x</script><style>y</style><template>t</template><p hidden>z</p><div style='display: none'>w<p>v</p></div><span aria-hidden=true>u<br>s</span>b",
    ),
  ).toBe("ab");
});

test("entities are characters, and a title is one line", () => {
  expect(readableHtml("<title>a\n &amp; b</title>&lt;tag&gt; &eacute;&#x41;", "https://a.test/")).toEqual({
    title: "a & b",
    text: "<tag> éA",
  });
});

test("a page with a main part is that part, unless it is all but empty", () => {
  const long = "word ".repeat(60).trim();
  expect(textOf(`<nav>menu</nav><main><p>${long}</p></main><footer>imprint</footer>`)).toBe(long);
  expect(textOf("<nav>menu</nav><main></main><p>rest</p>")).toBe("menu\n\nrest");
});

test("any text of tags is read to its end, and nothing of a script comes out", () => {
  const piece = fc.constantFrom(
    "<p>",
    "</p>",
    "<ul>",
    "<li>",
    "</ul>",
    "<pre>",
    "</pre>",
    "<a href=x>",
    "</a>",
    "<script>SECRET</script>",
    "<div hidden>",
    "</div>",
    "<main>",
    "</main>",
    "text",
    "< ",
    "&amp;",
    "<!--",
    "-->",
    "<table><tr><td>",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60, size: "max" }), (pieces) => {
      expect(textOf(pieces.join("").replaceAll("<!--", "<!-- -->"))).not.toContain("SECRET");
    }),
    { numRuns: 500 },
  );
});
