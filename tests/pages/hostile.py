"""What a transcript could hold to act in a page, break out of its place, or lie about what it
is."""

from __future__ import annotations

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)' tabindex=1 autofocus onfocus='alert(1)",
    "</title></textarea></style></template></script><script>alert(1)</script>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    '[link](javascript:alert(1)) ![x](x" onerror="alert(1)) <javascript:alert(1)>',
    "javascript:alert(1)",
    "{{ 7*7 }}{% raw %}${alert(1)}",
    "<a href='data:text/html,<script>alert(1)</script>' target=_blank>x</a>",
    "<meta http-equiv=refresh content='0;url=https://example.com/'><base "
    "href=https://example.com/>",
    "<style>*{display:none!important}</style><link rel=stylesheet href=https://example.com/x.css>",
    "<form action=https://example.com/><input name=q autofocus onfocus=alert(1)>",
    "\x1b[31mred\x1b[0m\x1b]8;;https://example.com\x07link\x1b]8;;\x07\x00\x08\x7f",
    "\u202egnp.exe\u2066\u200b\ufeff",
    "&lt;img src=x onerror=alert(1)&gt; &#x3C;script&#x3E;alert(1)",
    "x" * 3000,
    "\u0416" + "\u0301" * 400,
    "]]><!--<script>alert(1)//-->",
    "../../../etc/passwd%00%0d%0aSet-Cookie:x=1?q=1#e1&amp;\\..\\",
]
EVERYTHING = " ".join(HOSTILE)
