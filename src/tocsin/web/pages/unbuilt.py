"""The page that the server shows until the web pages are built."""

from __future__ import annotations

UNBUILT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tocsin: the web pages are not built</title>
<h1>Tocsin is running, but its web pages are not built</h1>
<p>The API and the timers work without them; see <a href="/docs">/docs</a>.</p>
<p>To build the pages, install <a href="https://nodejs.org">Node.js</a> 20 or newer with npm, and run in the checkout:</p>
<pre>make web</pre>
<p>Then restart the server. Released packages contain the built pages.</p>
</html>
"""
