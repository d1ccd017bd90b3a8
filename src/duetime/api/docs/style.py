"""The look of the docs page."""

STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6778;--paper:#fff;--raised:#f5f7fa;
--line:#dfe4ea;--accent:#1f5fd6;--ok:#13795b;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e4e9f0;--soft:#9aa7b8;--paper:#12161c;
--raised:#1a2029;--line:#2c3542;--accent:#7fb0ff;--ok:#56c596;--bad:#ff8a80}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:1rem}
body{margin:0;display:grid;grid-template-columns:16rem minmax(0,1fr);color:var(--ink);
background:var(--paper);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1.5rem 1rem;
border-right:1px solid var(--line);background:var(--raised)}
nav strong{font-size:1.2rem}nav small{color:var(--soft)}
nav b{display:block;margin:1.2rem 0 .2rem;padding:0 .5rem;font-size:.75rem;color:var(--soft);
text-transform:uppercase;letter-spacing:.06em}
nav a{display:block;padding:.35rem .5rem;margin-top:.15rem;border-radius:6px;color:inherit;
text-decoration:none;font-size:.92rem}
nav a:hover,nav a:focus-visible{background:var(--line)}
main{max-width:56rem;width:100%;padding:2rem clamp(1rem,4vw,3rem) 6rem}
h1{font-size:2rem;line-height:1.2;margin:0}
h2{font-size:1.7rem;margin:0 0 .5rem}
h3{font-size:1.3rem;margin:0 0 .5rem}
h4{font-size:.8rem;margin:1.4rem 0 .5rem;color:var(--soft);text-transform:uppercase;
letter-spacing:.06em}
.lead{font-size:1.15rem;color:var(--soft);margin:.3rem 0 1rem}
.group{border-top:3px solid var(--accent);margin-top:4rem;padding-top:1.5rem}
section{border-top:1px solid var(--line);margin-top:2.5rem;padding-top:2rem}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.88em}
code{background:var(--raised);border:1px solid var(--line);border-radius:4px;padding:.05em .3em}
.path code{font-size:1rem;border:0;background:none}
pre{background:var(--raised);border:1px solid var(--line);border-radius:8px;padding:.9rem 1rem;
overflow:auto;margin:.4rem 0;line-height:1.45}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
td,th{padding:.5rem .6rem .5rem 0;border-bottom:1px solid var(--line);text-align:left;
vertical-align:top}
th{padding-top:1rem;color:var(--soft);font-weight:600}
td:first-child{white-space:nowrap}td:nth-child(2){color:var(--soft);white-space:nowrap}
em{color:var(--bad);font-style:normal;font-size:.78rem}
details{border-bottom:1px solid var(--line);padding:.45rem 0}
summary{cursor:pointer}
.ok,.bad{font-weight:700;margin:0 .4rem}.ok{color:var(--ok)}.bad{color:var(--bad)}
.method{display:inline-block;min-width:3.6rem;text-align:center;font-size:.7rem;font-weight:700;
padding:.1rem .35rem;border-radius:4px;color:#fff;background:#48566a}
.get{background:#1f5fd6}.post{background:#13795b}.put{background:#8a5a00}.delete{background:#b3261e}
@media(max-width:48rem){body{display:block}nav{position:static;height:auto;border-right:0;
border-bottom:1px solid var(--line)}}
"""
