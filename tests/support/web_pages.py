"""Web pages of five kinds, each with the strings to keep and the strings to leave out."""

from typing import NamedTuple


class WebPage(NamedTuple):
    """A page. `wanted` are strings of its Markdown, `noise` strings that must be left out."""

    html: str
    wanted: tuple[str, ...]
    noise: tuple[str, ...]


ARTICLE = WebPage(
    """<!doctype html><html lang="en"><head><title>Structured concurrency</title>
<script>track("page view")</script><style>p { color: red }</style></head><body>
<header><a href="/">Example Blog</a><nav><ul><li><a href="/all">All posts</a></li></ul></nav>
<form role="search"><input name="q"><button>Find posts</button></form></header>
<div class="layout"><main><article><header><h1>Structured concurrency</h1>
<p>By Ada Byron, <time>3 November 2026</time></p></header>
<p>A <em>task group</em> waits for <a href="/tasks">all of its tasks</a>.</p>
<pre><code class="language-python">async with asyncio.TaskGroup() as group:
    group.create_task(work())
</code></pre>
<ol><li>Open a group<ul><li>start tasks in it</li><li>never outside</li></ul></li>
<li>Leave it</li></ol>
<blockquote><p>No task outlives its group.</p></blockquote>
<aside><h2>Related posts</h2><a href="/x">Ten tips for callbacks</a></aside>
<footer>Tagged: concurrency <button>Share this post</button></footer></article></main>
<aside class="advert"><p>Buy our cloud hosting today!</p></aside></div>
<dialog open>We value your privacy</dialog>
<footer><p>© 2026 Example Blog. Imprint</p></footer>
<noscript><img src="/pixel.gif">Enable JavaScript</noscript></body></html>""",
    (
        "# Structured concurrency",
        "By Ada Byron, 3 November 2026",
        "A *task group* waits for [all of its tasks](/tasks).",
        "```\nasync with asyncio.TaskGroup() as group:\n    group.create_task(work())\n```",
        "1. Open a group\n   * start tasks in it\n   * never outside\n2. Leave it",
        "> No task outlives its group.",
    ),
    (
        *("track(", "color: red", "Example Blog", "All posts", "Find posts", "Related posts"),
        *("Ten tips", "Share this post", "cloud hosting", "privacy", "Imprint", "JavaScript"),
    ),
)

API = WebPage(
    """<html><head><title>widgets — Widget API</title></head><body>
<div role="banner">Widget Inc.</div>
<div role="navigation"><a href="a.html">Getting started</a> <a href="b.html">Changelog</a></div>
<div role="main"><h1>widgets</h1><p>Functions on <code>Widget</code> objects.</p>
<table><thead><tr><th>Name</th><th>Type</th><th>Default</th></tr></thead><tbody>
<tr><td><code>size</code></td><td>int</td><td>10</td></tr>
<tr><td><code>color</code></td><td>str | None</td><td>None</td></tr></tbody></table>
<h2>Errors</h2><table><tr><td>404</td><td>There is no such widget</td></tr></table>
<dl><dt>timeout</dt><dd>Seconds to wait.</dd></dl></div>
<div role="complementary">On this page <a href="#errors">Errors</a></div>
<div role="contentinfo">Built with a generator</div></body></html>""",
    (
        "Functions on `Widget` objects.",
        "| Name | Type | Default |\n| --- | --- | --- |\n| `size` | int | 10 |",
        "str | None",
        "| 404 | There is no such widget |",
        "Seconds to wait.",
    ),
    ("Widget Inc.", "Getting started", "Changelog", "On this page", "Built with a generator"),
)

CHINESE = WebPage(
    """<html lang="zh"><head><title>安装指南</title></head><body>
<nav>首页 产品 价格 登录</nav><aside>推荐阅读 十个技巧</aside>
<article><h1>安装指南</h1><p>先安装 <strong>Python 3.11</strong>。再运行</p>
<pre>pip install demo</pre><h2>常见问题</h2><ul><li>端口被占用怎么办</li></ul></article>
<footer>京ICP备00000000号</footer></body></html>""",
    (
        "# 安装指南",
        "先安装 **Python 3.11**。再运行",
        "```\npip install demo\n```",
        "## 常见问题\n\n* 端口被占用怎么办",
    ),
    ("首页", "登录", "推荐阅读", "京ICP备"),
)

TINY = WebPage("<p>ok", ("ok",), ("<p>",))

ISSUES = WebPage(
    """<html><head><title>Issues · acme/widget</title></head><body>
<header><a href="/pricing">Pricing</a><a href="/login">Sign in</a></header>
<section><h1>12 open issues</h1>
<select><option>Newest</option><option>Oldest</option></select>
<article><h2><a href="/acme/widget/issues/7">Crash on empty input</a></h2>
<p>#7 opened by bob</p></article>
<article><h2><a href="/acme/widget/issues/9">Docs: explain limits</a></h2>
<p>#9 opened by eve</p></article></section>
<footer>Terms Privacy Status</footer></body></html>""",
    (
        "12 open issues",
        "[Crash on empty input](/acme/widget/issues/7)",
        "#7 opened by bob",
        "[Docs: explain limits](/acme/widget/issues/9)",
        "#9 opened by eve",
    ),
    ("Pricing", "Sign in", "Oldest", "Terms Privacy"),
)

PAGES = {"article": ARTICLE, "api": API, "chinese": CHINESE, "tiny": TINY, "issues": ISSUES}
