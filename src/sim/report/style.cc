// The colours. Hues are those that people with any of the usual forms of colour blindness tell
// apart, darkened or lightened until they stand out from their page; lines also differ by their
// dashes. Levels are one hue that goes away from the page.
#include "sim/report/svg.h"

namespace muster::sim::report {

std::string_view PlotStyle() {
  return R"(:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1b1f24; --muted: #59626d; --grid: #e1e5ea; --wait: #9aa4b0;
  --c0: #0067a8; --c1: #c2500a; --c2: #007a5c; --c3: #a3437b; --c4: #806400; --c5: #2f8bc0; --c6: #4d4d4d;
  --s0: #85b8db; --s1: #62a1ce; --s2: #448abf; --s3: #2c72aa; --s4: #1a5a8f; --s5: #0d4170; --s6: #06264a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171c; --ink: #e8eaed; --muted: #a6afba; --grid: #2d343d; --wait: #6d7886;
    --c0: #56b4e9; --c1: #f0904e; --c2: #34bf97; --c3: #e294c4; --c4: #dcb92e; --c5: #a3d3f5; --c6: #b8b8b8;
    --s0: #2d6286; --s1: #37779f; --s2: #448cb8; --s3: #5aa2cf; --s4: #7cb9e0; --s5: #abd5f0; --s6: #e3f3fd;
  }
}
.plot { font: 13px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
.plot .paper { fill: var(--paper); }
.plot text { fill: var(--ink); unicode-bidi: isolate; }
.plot text.muted { fill: var(--muted); }
.plot text.strong { font-weight: 600; }
.plot .middle { text-anchor: middle; }
.plot .end { text-anchor: end; }
.plot .grid { stroke: var(--grid); stroke-width: 1; }
.plot .axis { stroke: var(--muted); stroke-width: 1; }
.plot .outline { fill: none; stroke-width: 1.2; }
.plot .range { stroke: var(--ink); stroke-width: 1.5; fill: none; }
.plot .waiting { fill: var(--wait); }
.plot .tip { fill: transparent; }
.plot .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.plot .line.c1 { stroke-dasharray: 7 3; }
.plot .line.c2 { stroke-dasharray: 3 2; }
.plot .line.c3 { stroke-dasharray: 9 3 2 3; }
.plot .line.c4 { stroke-dasharray: 12 4; }
.plot .line.c5 { stroke-dasharray: 4 4; }
.plot .line.c6 { stroke-dasharray: 12 3 2 3 2 3; }
.plot .area { fill-opacity: 0.3; }
.plot .bar { fill-opacity: 0.6; }
.plot .dot { fill-opacity: 0.55; }
.plot .c0 { stroke: var(--c0); } .plot .c1 { stroke: var(--c1); } .plot .c2 { stroke: var(--c2); }
.plot .c3 { stroke: var(--c3); } .plot .c4 { stroke: var(--c4); } .plot .c5 { stroke: var(--c5); }
.plot .c6 { stroke: var(--c6); }
.plot .fill { stroke: none; }
.plot .fill.c0 { fill: var(--c0); } .plot .fill.c1 { fill: var(--c1); } .plot .fill.c2 { fill: var(--c2); }
.plot .fill.c3 { fill: var(--c3); } .plot .fill.c4 { fill: var(--c4); } .plot .fill.c5 { fill: var(--c5); }
.plot .fill.c6 { fill: var(--c6); }
.plot .s0 { fill: var(--s0); } .plot .s1 { fill: var(--s1); } .plot .s2 { fill: var(--s2); }
.plot .s3 { fill: var(--s3); } .plot .s4 { fill: var(--s4); } .plot .s5 { fill: var(--s5); }
.plot .s6 { fill: var(--s6); }
)";
}

}  // namespace muster::sim::report
