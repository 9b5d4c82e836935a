"""The page that stands where the pages would be while nobody has built them."""

from __future__ import annotations

UNBUILT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tocsin: the pages are not built</title>
<h1>Tocsin is running; its pages are not built yet</h1>
<p>The API and the engine work as always: see <a href="/docs">/docs</a>.</p>
<p>To build the pages, have <a href="https://nodejs.org">Node.js</a> 20 or newer with npm on the path, then, in the
checkout:</p>
<pre>make web</pre>
<p>and start the server again. An installed package brings its pages with it.</p>
</html>
"""
