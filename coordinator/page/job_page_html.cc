#include "coordinator/page/job_page_text.h"

namespace parasol {

const char kJobPageHtml[] = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
 script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none';
 form-action 'none'">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Parasol</title>
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>
</head>
<body>
<a class="skip" href="#tasks">Skip to the tasks</a>
<header>
<h1>Parasol</h1>
<span id="phase" class="pill">…</span>
<span id="run" class="quiet"></span>
<span id="fresh" class="quiet" role="status"></span>
</header>
<main>
<noscript>This page needs its script; the same is in
<a href="status.json">status.json</a>.</noscript>
<section aria-labelledby="bound-title" class="card" id="bound">
<h2 id="bound-title">What bounds the job</h2>
<p id="bound-first">…</p>
<ol id="bound-others"></ol>
</section>
<section aria-label="Progress" class="card">
<div class="bar" id="progress" role="progressbar" aria-valuemin="0"
 aria-valuemax="100"><div></div></div>
<dl id="numbers"></dl>
</section>
<section aria-label="Curves" id="curves"></section>
<section aria-labelledby="tasks-title" class="card" id="tasks" tabindex="-1">
<div class="row">
<h2 id="tasks-title">Tasks</h2>
<label>Filter <kbd>/</kbd> <input id="filter" type="search"
 autocomplete="off" spellcheck="false"></label>
<label><input id="amiss" type="checkbox"> only with something amiss</label>
<span id="count" class="quiet" role="status"></span>
</div>
<p id="legend" class="legend" aria-label="Parts of a step"></p>
<h3>Workers</h3>
<div class="scroll"><table id="workers"></table></div>
<h3>Parameter servers</h3>
<div class="scroll"><table id="ps"></table></div>
<h3>Others</h3>
<div class="scroll"><table id="others"></table></div>
</section>
<section aria-labelledby="notes-title" class="card">
<h2 id="notes-title">What has happened</h2>
<ul id="notes"></ul>
</section>
</main>
<footer class="quiet"><a href="status.json">status.json</a>
<a href="metrics">metrics</a>
Keys: <kbd>/</kbd> filter, <kbd>Tab</kbd> columns and curves,
<kbd>←</kbd> <kbd>→</kbd> along a curve</footer>
</body>
</html>
)html";

}  // namespace parasol
