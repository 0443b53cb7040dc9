"""Cases of the readers of the check library: what each prints of what file (Table 7, Appendix F).

Plain tables: a reader's answer stands as its lines, ``None`` for an answer that is refused.
"""

from __future__ import annotations

import json

REPORT = """\
\ufeff# Report: not this
Host Name: db-1
port = 5432
Empty:
quoted : "a: b"
- Bullet: yes
* **Bold**: strong
tls_enabled: On
twice: 1
twice: 1
torn: 1
torn: 2
url: http://x:80/y
http://x:80/y: linked
path = /a=b
"Quoted Key": v
trailing: x   \r
unicode: \u00e9
tab\tbed
"""
OBJECT = """\
{"host": "db-1", "port": 5432, "Deep": {"tls-mode": "on", "n": {"x": -1.5}},
 "tags": ["b", "a"], "none": null, "flag": true, "esc": "a\\"b\\\\c\\/\\u00e9\\ud83d\\ude00",
 "objects": [{"id": 7}, {"id": 8}], "empty": [], "void": {}, "twice": {"v": 1}, "again": {"v": 2},
 "a.b": "dotted", "k": {"only": "here"}}
"""
LONG = json.dumps(
    {"long": "x\\" + "y" * 5000, "rows": {f"k{n}": {"v": -12.5} for n in range(120)}, "end": 7}
)
READERS: dict[str, list[tuple[str | None, str]]] = {
    # file: (what is printed, the reader)
    REPORT: [
        ("db-1", "field FILE host_name"),
        ("db-1", "field FILE HOST-NAME"),
        ("5432", "field FILE port"),
        ("", "field FILE empty"),
        ("a: b", "field FILE quoted"),
        ("yes", "field FILE bullet"),
        ("strong", "field FILE bold"),
        ("On", "field FILE 'TLS enabled'"),
        ("1", "field FILE twice"),
        (None, "field FILE torn"),
        ("http://x:80/y", "field FILE url"),
        ("linked", "field FILE http://x:80/y"),
        ("/a=b", "field FILE path"),
        ("v", "field FILE 'quoted key'"),
        ("x", "field FILE trailing"),
        ("\u00e9", "field FILE unicode"),
        ("bed", "field FILE tab"),
        (None, "field FILE report"),
        (None, "field FILE absent"),
        (None, "field FILE '*'"),
        (None, "field FILE ''"),
        (None, "field FILE"),
    ],
    OBJECT: [
        ("db-1", "field FILE host"),
        ("5432", "field FILE PORT"),
        ("on", "field FILE tls_mode"),
        ("on", "field FILE deep.tls-mode"),
        ("-1.5", "field FILE deep.n.x"),
        ("b\na", "field FILE tags"),
        ("null", "field FILE none"),
        ("true", "field FILE flag"),
        ('a"b\\c/\u00e9\U0001f600', "field FILE esc"),
        (None, "field FILE id"),
        ("", "field FILE empty"),
        (None, "field FILE void"),
        (None, "field FILE v"),
        ("1", "field FILE twice.v"),
        ("dotted", "field FILE a.b"),
        ("here", "field FILE only"),
        (None, "field FILE deep"),
    ],
    LONG: [
        ("7", "field FILE end"),
        ("-12.5", "field FILE rows.k119.v"),
        (None, "field FILE k119"),
    ],
    '{"broken": 1': [(None, "field FILE absent")],
    '{"a": 1} trailing: x': [("x", "field FILE '{\"a\": 1} trailing'")],
    "": [(None, "field FILE a"), ("0", "rows FILE a:1"), ("", "column FILE a:1")],
    "name\tcity\nann\tNew York\nbob\tRome\n": [
        ("ann\nbob", "column FILE name:1"),
        ("New York\nRome", "column FILE city:2"),
        ("New York\nRome", "column FILE CITY:1"),
        ("Rome", "cell FILE name:1 BOB city:2"),
        (None, "cell FILE name:1 eve city:2"),
        ("2", "rows FILE name:1"),
        (None, "rows FILE name"),
        (None, "rows FILE name:0"),
        (None, "rows FILE name:x"),
        (None, "rows FILE"),
        (None, "cell FILE name:1 ann"),
    ],
    "ann\tNew York\nbob\tRome\n": [
        ("ann\nbob", "column FILE name:1"),
        ("New York\nRome", "column FILE city:2"),
        ("2", "rows FILE name:1"),
        ("New York", "cell FILE name:1 ann city:2"),
        ("\n", "column FILE more:3"),
    ],
    'name,city\n"Ann, B.",Rome\n"say ""x""","a b"\n': [
        ('Ann, B.\nsay "x"', "column FILE name:1"),
        ("Rome\na b", "column FILE city:2"),
        ("Rome", "cell FILE name:1 'ann, b.' city:2"),
    ],
    "| Host Name | Port |\n|---|---:|\n| a | 80 |\n|  | 90 |\n| a | 80 |\n": [
        ("a\n\na", "column FILE host-name:1"),
        ("80\n90\n80", "column FILE port:2"),
        ("3", "rows FILE host_name:1"),
        ("80", "cell FILE host_name:1 a port:2"),
        ("90", "cell FILE port:2 90 port:2"),
    ],
    " id | note \n----+------\n 1 | x, y\n 2 | z\n(2 rows)\n\n": [
        ("1\n2", "column FILE id:1"),
        ("x, y\nz", "column FILE note:2"),
        ("2", "rows FILE id:1"),
    ],
    "+----+---+\n| id | v |\n+----+---+\n|  1 | a |\n|  1 | b |\n+----+---+\n": [
        ("a\nb", "column FILE v:2"),
        (None, "cell FILE id:1 1 v:2"),
    ],
    "NAME      STATE    AGE\nweb one   Running  5d\ndb        Off      12d\n": [
        ("web one\ndb", "column FILE name:1"),
        ("Off", "cell FILE name:1 db state:2"),
        ("5d", "cell FILE name:1 'web  one' age:3"),
    ],
    "NAME     STATE  AGE\nweb             5d\n         Off    12d\nk\u00f6ln            1d\n": [
        ("5d\n12d\n1d", "column FILE age:3"),
        ("\nOff\n", "column FILE state:2"),
        ("web\n\nk\u00f6ln", "column FILE name:1"),
        ("", "cell FILE name:1 web state:2"),
    ],
    "ITEM   COUNT  SIZE\nann        1     3\nb             200\n        20\n": [
        ("1\n\n20", "column FILE count:2"),
        ("3\n200\n", "column FILE size:3"),
    ],
    "-n: -e\n--: x\n*: star\nk: $(no) `no` \\\n": [
        ("-e", "field FILE -n"),
        ("x", "field FILE --"),
        ("star", "field FILE '*'"),
        ("$(no) `no` \\", "field FILE k"),
    ],
    "path\tsize\r\n/a b\t1\r\n/c*\t2\r\n": [
        ("2", "cell FILE path:1 '/c*' size:2"),
        (None, "cell FILE path:1 /c size:2"),
        ("1", "cell FILE path:1 '/A   B' size:2"),
    ],
    "Gr\u00f6\u00dfe\tOrt\n1\tK\u00f6ln\n": [
        ("1", "column FILE gr\u00f6\u00dfe:1"),
        ("1", "cell FILE ort:2 K\u00f6ln gr\u00f6\u00dfe:1"),
    ],
    "name\tcity\n": [
        ("0", "rows FILE name:1"),
        ("", "column FILE city:2"),
        (None, "cell FILE name:1 ann city:2"),
    ],
    "pid user\n1 root\n20 www\n": [
        ("root\nwww", "column FILE user:2"),
        ("2", "rows FILE pid:1"),
    ],
    "1 root\n20 www\n": [("root\nwww", "column FILE user:2"), ("2", "rows FILE pid:1")],
    "# name value\na 1\n": [("1", "column FILE value:2"), ("1", "rows FILE name:1")],
    "city\nNew York\nRome\n": [
        ("New York\nRome", "column FILE city:1"),
        ("2", "rows FILE city:1"),
    ],
    "only\r\n\r\nx\r\n": [("x", "column FILE only:1")],
    "a,b\n1,2,3\n4\n": [("1\n4", "column FILE a:1"), ("2\n", "column FILE b:2")],
    "Host\n'h'\n": [("h", "column FILE host:1")],
}
