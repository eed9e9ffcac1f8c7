# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The looks of the page, in light and in dark."""

CSS = """
:root {
  color-scheme: light dark;
  --ground: #fbfbfd; --card: #ffffff; --edge: #d9dce3; --text: #1c2330;
  --soft: #5b6575; --lane: #f1f3f7; --alarm: #fde4e1; --red: #b3261e;
  --green: #1b6e3c; --guest: #9bd5ae; --guest2: #d6efdd; --disk: #a9c8f2;
  --disk2: #dbe8fa; --thing: #cfc1ef; --thing2: #e9e2f8; --gone: #f3b7b1;
  --job: #f2b64b; --ink: #14181f; --idle: #e3e8f0; --busy: #fbe3b3;
  --link: #1a56b0; --dull: #b9c0cc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12151b; --card: #1a1e26; --edge: #343b48; --text: #e4e8ef;
    --soft: #9aa5b6; --lane: #20252f; --alarm: #46211f; --red: #ff9a90;
    --green: #7fd6a0; --guest: #2f7d4b; --guest2: #24412f; --disk: #31609f;
    --disk2: #26364d; --thing: #5d4a91; --thing2: #37304c;
    --gone: #7c322c; --job: #c98a1f; --ink: #f4f6fa; --idle: #2b323f;
    --busy: #5c4612; --link: #8ab4f8; --dull: #566072;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1720px; padding: 24px; color: var(--text);
  background: var(--ground);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 8px; }
h2 { font-size: 1.3rem; margin: 40px 0 4px; }
h3 { font-size: 1.05rem; margin: 0 0 8px; display: flex; gap: 10px;
  align-items: baseline; justify-content: space-between; }
header p, .story { max-width: 80ch; margin: 0 0 12px; color: var(--soft); }
a { color: var(--link); }
code { color: var(--text); font-size: .92em; }
.pair { display: flex; flex-wrap: wrap; gap: 20px; align-items: flex-start; }
article { background: var(--card); border: 1px solid var(--edge);
  border-radius: 10px; padding: 16px; min-width: 0; flex: 1 1 640px;
  max-width: 860px; }
.badge { border-radius: 5px; padding: 1px 8px; font-size: .85em;
  white-space: nowrap; }
.badge.safe { background: var(--guest2); color: var(--green); }
.badge.unsafe { background: var(--alarm); color: var(--red); }
.verdict { margin: 10px 0 8px; font-size: 1.05rem; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { border: 1px solid var(--edge); padding: 4px 8px; text-align: left;
  vertical-align: top; }
th { font-weight: 600; }
caption { text-align: left; color: var(--soft); padding: 4px 0; }
tr.alarm { background: var(--alarm); }
td.same { color: var(--soft); }
td em { color: var(--red); font-style: normal; }
summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
.scroll, .picture { overflow-x: auto; }
.picture { margin: 0 -8px; padding: 0 8px; }
svg { display: block; width: 100%; height: auto; overflow: visible;
  min-width: 600px;
  font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
svg text { fill: var(--text); }
svg .head { font-weight: 600; fill: var(--soft); }
svg .clock { fill: var(--soft); }
svg .actor { font-weight: 600; }
svg .wrong { fill: var(--red); font-weight: 600; }
svg .says { font-weight: 600; fill: var(--ink); }
svg .aside { fill: var(--ink); }
svg .label { font-size: 11px; fill: var(--ink); }
svg .percent { font-size: 11px; font-weight: 600; fill: #14181f; }
.rule { stroke: var(--edge); stroke-width: 1; }
.lane { fill: var(--lane); fill-opacity: .55; }
.alarm { fill: var(--alarm); }
.absent { stroke: var(--edge); stroke-dasharray: 2 5; stroke-width: 1.5; }
.nova.idle { fill: var(--idle); }
.nova.busy { fill: var(--busy); }
.nova.held { fill: var(--thing2); stroke: var(--thing); }
.nova.error { fill: var(--gone); }
.bar.full.guest { fill: var(--guest); }
.bar.full.disk { fill: var(--disk); }
.bar { stroke-dasharray: 4 3; }
.bar.guest { fill: var(--guest2); stroke: var(--guest); }
.bar.disk { fill: var(--disk2); stroke: var(--disk); }
.bar.full { stroke: none; }
.strip, .note { fill: var(--thing); }
.strip.plain, .note.plain { fill: var(--dull); }
.strip.bad { fill: var(--red); }
.bar.bad, .note.bad { fill: var(--gone); stroke: var(--red);
  stroke-dasharray: none; }
.job { fill: var(--job); }
@media print { body { max-width: none; } article { break-inside: avoid; } }
"""
