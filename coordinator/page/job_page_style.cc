#include "coordinator/page/job_page_text.h"

namespace parasol {

const char kJobPageStyle[] = R"css(
:root {
  --back: #f4f5f7; --card: #fff; --text: #1b2330; --quiet: #5c6675;
  --line: #dfe3e8; --accent: #1f5fd0; --good: #1a7f4b; --warn: #96590a;
  --bad: #b3261e; --warn-back: #fff3dc; --bad-back: #fde7e5;
  --input: #b8860b; --pull: #2f7dd1; --compute: #2d9461; --push: #7a5bd0;
  --wait: #a9b1bc; --stood: #c8453b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #12161c; --card: #1b212a; --text: #e6eaf0; --quiet: #9aa5b4;
    --line: #313a46; --accent: #7fb0ff; --good: #5ccb92; --warn: #f0b95a;
    --bad: #ff8a80; --warn-back: #372c14; --bad-back: #3d1d1b;
    --input: #d9ac3d; --pull: #5ba3f0; --compute: #4fbd87; --push: #a48df0;
    --wait: #566170; --stood: #f07167;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--back); color: var(--text);
  font: 15px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
}
header, main, footer { max-width: 1280px; margin: 0 auto; padding: 0 16px; }
header {
  display: flex; flex-wrap: wrap; gap: 4px 14px; align-items: center;
  padding-top: 14px; padding-bottom: 10px;
}
h1 { font-size: 20px; margin: 0; }
h2 { font-size: 15px; margin: 0; }
h3 { font-size: 13px; margin: 14px 0 4px; color: var(--quiet); }
#fresh { margin-left: auto; }
#fresh.late { color: var(--bad); font-weight: 600; }
.quiet { color: var(--quiet); font-size: 13px; }
.card, .curve {
  background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; padding: 14px 16px; margin-bottom: 14px;
}
.pill {
  border-radius: 99px; padding: 1px 12px; font-weight: 600; font-size: 13px;
  color: var(--card); background: var(--accent);
}
.pill.complete { background: var(--good); }
.pill.failed { background: var(--bad); }
#bound { border-left: 5px solid var(--good); }
#bound.warn { border-left-color: var(--warn); }
#bound.bad { border-left-color: var(--bad); }
#bound-first { font-size: 18px; margin: 6px 0 0; overflow-wrap: anywhere; }
#bound-others { margin: 8px 0 0; padding-left: 20px; color: var(--quiet); }
#bound-others:empty { display: none; }
#bound-others li { overflow-wrap: anywhere; }
.bar { height: 10px; background: var(--line); border-radius: 5px;
  overflow: hidden; }
.bar div { height: 100%; width: 0; background: var(--accent); }
dl {
  display: grid; gap: 12px 18px; margin: 12px 0 0;
  grid-template-columns: repeat(auto-fill, minmax(140px, 1fr));
}
dt { font-size: 12px; color: var(--quiet); }
dd { margin: 0; font-size: 17px; font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; }
dl .wide { grid-column: 1 / -1; }
dl .wide dd { font-size: 14px; }
#curves { display: grid; gap: 14px; margin-bottom: 14px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); }
.curve { margin: 0; padding-bottom: 8px; }
.curve .row { justify-content: space-between; }
.curve svg { width: 100%; height: 110px; display: block; touch-action: pan-y; }
.range { display: flex; justify-content: space-between; font-size: 12px; }
.curve output { font-variant-numeric: tabular-nums; font-size: 13px; }
polyline { fill: none; stroke: var(--accent); stroke-width: 1.8;
  vector-effect: non-scaling-stroke; stroke-linejoin: round; }
ellipse { fill: var(--accent); }
.grid { stroke: var(--line); stroke-width: 1;
  vector-effect: non-scaling-stroke; }
.row { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; }
.legend { margin: 10px 0 0; display: flex; flex-wrap: wrap; gap: 4px 14px;
  font-size: 13px; color: var(--quiet); }
.legend i { display: inline-block; width: 10px; height: 10px;
  border-radius: 3px; margin-right: 5px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
th { text-align: left; padding: 0; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th button { font: inherit; font-size: 12px; font-weight: 600; border: 0;
  background: none; color: var(--quiet); padding: 5px 10px 5px 0;
  cursor: pointer; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
td { padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td { white-space: nowrap; }
td.wide { white-space: normal; }
td.what { overflow-wrap: anywhere; min-width: 130px; }
tr.warn td { background: var(--warn-back); }
tr.bad td { background: var(--bad-back); }
.state { font-weight: 600; color: var(--good); white-space: nowrap; }
.warn .state { color: var(--warn); }
.bad .state { color: var(--bad); }
.parts { display: flex; width: 100%; min-width: 150px; height: 14px;
  border-radius: 4px; overflow: hidden; background: var(--line);
  margin-top: 3px; }
.parts i { display: block; height: 100%; }
.p-input { background: var(--input); } .p-pull { background: var(--pull); }
.p-compute { background: var(--compute); }
.p-push { background: var(--push); } .p-wait { background: var(--wait); }
.p-stood { background: var(--stood); }
input[type=search] { font: inherit; padding: 3px 8px; width: 150px;
  color: inherit; background: var(--back); border: 1px solid var(--line);
  border-radius: 6px; }
kbd { font-size: 12px; border: 1px solid var(--line); border-radius: 4px;
  padding: 0 5px; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 8px; top: 8px; background: var(--card); padding: 6px; }
#notes { list-style: none; margin: 8px 0 0; padding: 0; font-size: 13.5px; }
#notes li { padding: 3px 0; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
#notes time { color: var(--quiet); margin-right: 10px; }
#notes .warn { color: var(--warn); }
footer { padding-bottom: 24px; }
footer a { margin-right: 12px; }
@media (max-width: 640px) {
  header, main, footer { padding-left: 10px; padding-right: 10px; }
  #fresh { margin-left: 0; }
  dl { grid-template-columns: repeat(2, 1fr); }
  thead { display: block; }
  thead tr { display: flex; flex-wrap: wrap; border: 0; }
  th { border: 0; }
  tbody tr { display: grid; grid-template-columns: 1fr 1fr; gap: 2px 10px;
    padding: 8px 6px; border-bottom: 1px solid var(--line); }
  tbody tr.warn { background: var(--warn-back); }
  tbody tr.bad { background: var(--bad-back); }
  td { border: 0; padding: 0; }
  td.wide { grid-column: 1 / -1; }
  td { white-space: normal; }
  td[data-name]::before { content: attr(data-name) " "; font-size: 12px;
    color: var(--quiet); }
  td:empty { display: none; }
}
)css";

}  // namespace parasol
